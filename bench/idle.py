"""What 100 sessions cost while nothing happens: forks, wake-ups, processor time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.stage import Stage, cpu_s, program
from bench.table import Row, at_most, exactly

SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Count:
    """What the keepers have done so far. ``child_faults``: page faults of children that ended; a fork makes some."""

    machine_forks: int
    child_faults: int
    switches: int
    busy_s: float

    @classmethod
    def now(cls, keepers: list[int]) -> Count:
        return cls(
            machine_forks=machine_forks(),
            child_faults=sum(int(stat_fields(pid)[8]) for pid in keepers),
            switches=sum(map(switches, keepers)),
            busy_s=sum(map(cpu_s, keepers)),
        )


def measure(*, quick: bool) -> list[Row]:
    count, lasting_s = (5, 1.0) if quick else (100, 10.0)
    with Stage(quick=quick) as stage:
        baseline = Count.now([])
        time.sleep(lasting_s)
        baseline_forks = (Count.now([]).machine_forks - baseline.machine_forks) / lasting_s
        keepers = [session.keeper() for session in stage.sessions(count, program(), "sleep")]
        time.sleep(SETTLE_S)
        before = Count.now(keepers)
        time.sleep(lasting_s)
        after = Count.now(keepers)
    forks = (after.machine_forks - before.machine_forks) / lasting_s
    child_faults = after.child_faults - before.child_faults
    wakeups = (after.switches - before.switches) / lasting_s / count
    busy = (after.busy_s - before.busy_s) / lasting_s * 100
    sample = f"{count} sessions, {lasting_s:g} s"
    return [
        Row(
            "forks of idle keepers, seen by their children's page faults",
            sample,
            child_faults,
            "",
            None,
            "",
            exactly(0),
        ),
        Row("forks of the whole machine", sample, forks, "/s", baseline_forks, "before they were started"),
        Row("wake-ups of an idle keeper", sample, wakeups, "/s", None, "", at_most(0.3, "/s")),
        Row("CPU of all idle keepers together", sample, busy, "% of a core"),
    ]


def machine_forks() -> int:
    with open("/proc/stat") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("processes "))


def stat_fields(pid: int) -> list[str]:
    """``/proc/PID/stat`` from the state letter on."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def switches(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches:"))
