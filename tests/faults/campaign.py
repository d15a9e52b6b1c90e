"""The crash-consistency campaign: every operation is killed, or refused by the disk, at each thing it asks of the disk.

``script/faults`` takes a sample of the shots, ``script/faults --long`` all of them. Prints a table; exit code 1 when a
promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hitchpost import settings as config
from hitchpost.cli.failing import report
from hitchpost.cli.group import COMMANDS
from hitchpost.errors import HitchpostError
from hitchpost.ops.sessions import create, start
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.views.find import find
from hitchpost.runtimes import keepers
from hitchpost.store.session import Session
from tests.faults.scene import NAME, SOON_S, Scene, Violation, within
from tests.faults.tracing import KILL, Call, Done, calls, hit, process

FAULTS = (KILL, "ENOSPC", "EIO", "EDQUOT")
SAMPLE = 5
"""Shots for each operation in the short campaign."""

READY = '"ok\\": true'
"""What the keeper writes to its starter once the agent runs, as strace prints it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that is done to a session. ``prepare`` comes before, unhurt; ``deed`` is what the shots go at.

    ``deed`` gets the fault and returns how it ended. ``promised`` raises ``Violation`` when it ended well and what it
    promises is not so. ``within_life`` picks the calls that belong to it, where what is traced lives longer.
    """

    name: str
    prepare: Callable[[Scene], None]
    deed: Callable[[Scene, str | None], Done]
    promised: Callable[[Scene], None]
    within_life: Callable[[list[str]], tuple[int, int]] = lambda lines: (0, len(lines))


@dataclass(frozen=True, slots=True)
class Shot:
    operation: str
    fault: str
    call: str
    hit: bool
    acknowledged: bool
    violation: str = ""


# The operations -------------------------------------------------------------------------------------------------


def nothing(scene: Scene) -> None:
    """A home without sessions."""


def created(scene: Scene) -> None:
    done = process(lambda: _create(scene))
    if done.code != 0:
        raise Violation(f"could not create: {done.err}")


def running(scene: Scene) -> None:
    scene.run()


def ended(scene: Scene) -> None:
    scene.run()
    scene.must("stop", NAME)


def _create(scene: Scene) -> int:
    spec = SessionSpec(str(scene.workspace), command=scene.agent, name=NAME)
    return _told(lambda: create.create(str(scene.home), spec, config.load(), actor="test"))


def _start(scene: Scene) -> int:
    def begin() -> object:
        session = find(str(scene.home), NAME).record.id
        return start.start(str(scene.home), session, config.load(), actor="test", caller=os.environ)

    return _told(begin)


def _transition(scene: Scene) -> int:
    def change() -> object:
        (session,) = (name for name in os.listdir(scene.home / "sessions") if not name.startswith("."))
        return Session(str(scene.home / "sessions" / session), actor="test").transition("starting", run=1)

    return _told(change)


def _told(deed: Callable[[], object]) -> int:
    """What the command line makes of an operation's errors."""
    try:
        deed()
    except (HitchpostError, OSError) as error:
        return report(error)
    return 0


def traced(deed: Callable[[Scene], int]) -> Callable[[Scene, str | None], Done]:
    return lambda scene, fault: process(lambda: deed(scene), scene.log, fault)


def command(*words: str) -> Callable[[Scene, str | None], Done]:
    return lambda scene, fault: scene.hitch(*words, log=scene.log, fault=fault)


def kept_by_strace(then: Callable[[Scene], Done | None]) -> Callable[[Scene, str | None], Done]:
    """Start the session with a keeper that strace follows from its first step on; ``then`` once the agent runs."""

    def deed(scene: Scene, fault: str | None) -> Done:
        program = keepers.program()

        def begin() -> int:
            stand_in = str(Path(__file__).with_name("traced_keeper.py"))
            keepers.program = lambda: [*program[:3], stand_in, program[3], str(scene.log), fault or "-"]
            return _start(scene)

        done = process(begin)
        after = then(scene) if done.code == 0 else None
        within(SOON_S * 5, lambda: _followed_to_its_end(scene, done.code == 0 and after is None))
        return after or done

    return deed


def _followed_to_its_end(scene: Scene, may_live: bool) -> None:
    """strace has written its last line. A keeper that was not hit in its start lives on."""
    if not may_live and scene.keeper_lives():
        raise Violation("the keeper does not end")


def exit_by_itself(scene: Scene) -> Done | None:
    """The agent is told to leave; the end of a keeper is nobody's command, so it is never acknowledged."""
    try:
        scene.let_go()
        within(SOON_S * 5, lambda: _gone(scene))
    except Violation as late:
        return Done(None, "", str(late))
    return Done(1, "", "")


def _gone(scene: Scene) -> None:
    if scene.keeper_lives():
        raise Violation("the agent was told to leave and its keeper is still there")


def starting_phase(lines: list[str]) -> tuple[int, int]:
    return 0, next(number for number, line in enumerate(lines) if READY in line)


def ending_phase(lines: list[str]) -> tuple[int, int]:
    return starting_phase(lines)[1], len(lines)


def is_there(scene: Scene) -> None:
    if scene.rows().get(NAME, {}).get("state") != "created":
        raise Violation(f"acknowledged, but not created: {scene.rows()}")


def runs(run: int) -> Callable[[Scene], None]:
    def check(scene: Scene) -> None:
        row = scene.rows().get(NAME, {})
        if (row.get("state"), row.get("run")) != ("running", run):
            raise Violation(f"acknowledged, but run {run} does not run: {row}")

    return check


def is_stopped(scene: Scene) -> None:
    row = scene.rows().get(NAME, {})
    if row.get("state") != "stopped":
        raise Violation(f"acknowledged, but not stopped: {row}")


def is_over(scene: Scene) -> None:
    """A keeper that was killed cannot tell how the agent ended; that it was asked to is then not claimed either."""
    row = scene.rows().get(NAME, {})
    if row.get("state") != "stopped" and row.get("label") != "failed: keeper lost":
        raise Violation(f"acknowledged, but not over: {row}")


def is_gone(scene: Scene) -> None:
    if scene.rows():
        raise Violation(f"acknowledged, but not removed: {scene.rows()}")


def is_starting(scene: Scene) -> None:
    folder = next(scene.home.glob("sessions/????????????"))
    if scene.state_file(folder.name)["state"] != "starting":
        raise Violation("acknowledged, but the state is not in the file")


def nothing_promised(scene: Scene) -> None:
    raise Violation("nobody asked, and somebody was told that it worked")


OPERATIONS = (
    Operation("create", nothing, traced(_create), is_there),
    Operation("transition", created, traced(_transition), is_starting),
    Operation("start", created, traced(_start), runs(1)),
    Operation("stop", running, command("stop", NAME), is_stopped),
    Operation("restart", running, command("restart", NAME), runs(2)),
    Operation("restart after the end", ended, command("restart", NAME), runs(2)),
    Operation("rm", ended, command("rm", NAME), is_gone),
    Operation("rm --force", running, command("rm", "--force", NAME), is_gone),
    Operation("keeper: start", created, kept_by_strace(lambda scene: None), runs(1), starting_phase),
    Operation("keeper: exit", created, kept_by_strace(exit_by_itself), nothing_promised, ending_phase),
    Operation("keeper: stop", created, kept_by_strace(lambda scene: scene.hitch("stop", NAME)), is_over, ending_phase),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}


# Shooting -------------------------------------------------------------------------------------------------------


def targets(operation: Operation) -> list[Call]:
    """Every call of the operation that can be hit, found by letting it run unhurt."""
    scene = Scene()
    try:
        operation.prepare(scene)
        done = operation.deed(scene, None)
        if done.code != 0 and operation.promised is not nothing_promised:
            raise Violation(f"{operation.name} fails without any fault: {done}")
        check(scene, operation, acknowledged=done.code == 0)
        first, last = operation.within_life(scene.log.read_text(errors="replace").splitlines())
        return [call for call in calls(scene.log, scene.home) if first <= call.position <= last]
    finally:
        scene.close()


def shoot(operation: Operation, call: Call, fault: str) -> Shot:
    scene = Scene()
    shot = Shot(operation.name, fault, str(call), hit=False, acknowledged=False)
    try:
        operation.prepare(scene)
        done = operation.deed(scene, call.fault(fault))
        shot = replace(shot, hit=hit(scene.log, call, scene.home), acknowledged=done.code == 0)
        if done.code is None:
            raise Violation(f"hung: {done.err}")
        if "Traceback" in done.err:
            raise Violation(f"a traceback: {done.err}")
        check(scene, operation, acknowledged=done.code == 0)
    except Violation as broken:
        shot = replace(shot, violation=str(broken))
    except Exception:  # one shot that nobody thought of must not end the campaign
        shot = replace(shot, violation=traceback.format_exc())
    finally:
        scene.close()
    return shot


def check(scene: Scene, operation: Operation, *, acknowledged: bool) -> None:
    """Every promise, after the operation was hit, and after each of the commands that a person would try next."""
    scene.known_ids = {path.name.removeprefix(".removed-") for path in (scene.home / "sessions").iterdir()}
    scene.check_files()
    if acknowledged:
        operation.promised(scene)
    rows = scene.check_settles()
    rows = scene.check_truth()
    if NAME in rows:
        scene.must("restart", NAME)
    else:
        scene.run()
    scene.check_swept()
    scene.check_files()
    scene.known_ids |= {path.name for path in (scene.home / "sessions").iterdir()}
    row = scene.check_truth()[NAME]
    if row["state"] != "running":
        raise Violation(f"does not run after a restart: {row['label']}")
    scene.must("stop", NAME)
    is_stopped(scene)
    scene.check_truth()
    scene.must("rm", NAME)
    is_gone(scene)
    scene.check_one_at_a_time()
    scene.check_workspace()
    scene.check_files()
    scene.check_empty()


def warm_up() -> None:
    """Import what commands import when they are called: the copies of this process need not."""
    for name in COMMANDS:
        __import__(f"hitchpost.cli.{name}")


def chosen(operations: list[str], most: int) -> list[tuple[Operation, Call, str]]:
    """At most ``most`` shots of each operation, evenly spread over its calls and faults; 0 means all of them."""
    found = []
    for name in operations:
        found_calls = targets(BY_NAME[name])
        every = len(found_calls) * len(FAULTS)
        count = min(most, every) or every
        for number in range(count):
            found.append((BY_NAME[name], found_calls[number * len(found_calls) // count], FAULTS[number % len(FAULTS)]))
    return found


def worker(operations: list[str], most: int, part: int, parts: int) -> int:
    """Take every ``parts``-th shot, and print one line of JSON for each."""
    warm_up()
    for number, (operation, call, fault) in enumerate(chosen(operations, most)):
        if number % parts == part:
            print(json.dumps(asdict(shoot(operation, call, fault))), flush=True)
    return 0


# The table ------------------------------------------------------------------------------------------------------


def table(shots: list[Shot]) -> str:
    lines: list[tuple[str, ...]] = [("OPERATION", "FAULT", "SHOTS", "HIT", "ACKNOWLEDGED", "RECOVERED", "VIOLATIONS")]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for shot in shots:
        count = counts.setdefault((shot.operation, shot.fault), Counter())
        count.update(
            shots=1,
            hit=shot.hit,
            acknowledged=shot.acknowledged,
            recovered=not shot.violation,
            violations=bool(shot.violation),
        )
    keys = ("shots", "hit", "acknowledged", "recovered", "violations")
    order = [(operation.name, fault) for operation in OPERATIONS for fault in FAULTS]
    lines += [(*key, *(str(counts[key][name]) for name in keys)) for key in order if key in counts]
    total: Counter[str] = sum(counts.values(), Counter())
    lines.append(("all", "", *(str(total[name]) for name in keys)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def campaign(operations: list[str], most: int, jobs: int) -> list[Shot]:
    """Shoot with ``jobs`` workers at once."""
    words = [sys.executable, "-m", "tests.faults.campaign", "--most", str(most)]
    words += [f"--operation={name}" for name in operations]
    with tempfile.TemporaryFile() as errors:
        workers = [
            subprocess.Popen([*words, "--part", f"{number}/{jobs}"], stdout=subprocess.PIPE, stderr=errors, text=True)
            for number in range(jobs)
        ]
        shots: list[Shot] = []
        for process_of_ours in workers:
            out, _ = process_of_ours.communicate()
            shots += [Shot(**json.loads(line)) for line in out.splitlines()]
        if any(process_of_ours.returncode for process_of_ours in workers):
            errors.seek(0)
            raise SystemExit(f"the campaign broke off: {errors.read().decode()}")
        return shots


def arguments() -> Any:
    parser = argparse.ArgumentParser(prog="script/faults", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--long", action="store_true", help="every shot instead of a sample")
    parser.add_argument("--operation", action="append", choices=list(BY_NAME), help="just this one (may be repeated)")
    parser.add_argument("--most", type=int, help=f"shots for each operation; 0 means all (default: {SAMPLE})")
    parser.add_argument("--jobs", type=int, default=4, help="shots at a time (default: 4)")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args()


def run() -> int:
    options = arguments()
    operations = options.operation or list(BY_NAME)
    most = options.most if options.most is not None else 0 if options.long else SAMPLE
    if options.part:
        part, _, parts = options.part.partition("/")
        return worker(operations, most, int(part), int(parts))
    shots = campaign(operations, most, options.jobs)
    print(table(shots))
    for shot in shots:
        if shot.violation:
            print(f"\n{shot.operation}, {shot.fault} at {shot.call}\n  {shot.violation}")
    return 1 if any(shot.violation for shot in shots) else 0


if __name__ == "__main__":
    sys.exit(run())
