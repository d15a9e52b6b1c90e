"""Carrying out what the run's machine decides: one function for each kind of effect."""

from __future__ import annotations

import _signal
import os
import select
import time
from _signal import SIGCONT, SIGHUP, SIGTERM

from hitchpost import wire
from hitchpost.model import machine
from hitchpost.model import run as runs
from hitchpost.store import runfiles
from hitchpost.system import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hitchpost.keeper.keeper import Keeper

LATE_S = 0.5
FAREWELL_S = 1.0


def _write_intent(keeper: Keeper, effect: machine.WriteIntent) -> None:
    keeper.journal.write_intent(effect.by, effect.reason, effect.grace_s)


def _write_state(keeper: Keeper, effect: machine.WriteState) -> None:
    evidence = effect.evidence if isinstance(effect.evidence, dict) else {}
    keeper.journal.write_state(effect.state, effect.reason, evidence, effect.since)
    keeper.control.clients.tell_all({"event": "state", "state": effect.state, "reason": effect.reason})


def _ask_agent(keeper: Keeper, effect: machine.AskAgent) -> None:
    number = int(getattr(_signal, keeper.spec.quit_signal))
    try:
        if keeper.spec.quit_group:
            os.killpg(keeper.pid, number)
        else:
            process.send(keeper.pid, number)
    except OSError:
        process.send(keeper.pid, number)
    process.send(keeper.pid, SIGCONT)


def _ask_tree(keeper: Keeper, effect: machine.AskTree) -> None:
    """SIGTERM to each, once: a second one, or a hang-up, cuts short what the first one began.

    Interactive shells ignore SIGTERM and leave when they are hung up.
    """
    for pid in keeper.source.tree.pids():
        if process.ignores(pid, SIGTERM):
            process.send(pid, SIGHUP)
        elif pid != keeper.pid or keeper.spec.quit_signal != "SIGTERM":
            process.send(pid, SIGTERM)
        process.send(pid, SIGCONT)


def _look_at_tree(keeper: Keeper, effect: machine.LookAtTree) -> None:
    keeper.source.reap()
    keeper.feed(machine.TreeSeen(len(keeper.source.tree.pids()), time.monotonic()))


def _force(keeper: Keeper, effect: machine.Force) -> None:
    keeper.source.reap()
    keeper.feed(machine.Forced(keeper.source.tree.kill(), time.monotonic()))


def _count_end(keeper: Keeper, effect: machine.CountEnd) -> None:
    keeper.report.hurry()
    source, run = keeper.source, keeper.run
    keeper.ending = ending = runfiles.Ending(
        wait_status=source.wait_status,
        intent=run.intent,
        error=source.why_lost() if run.intent is None else None,
        ended_at=keeper.ended_at,
        ended_at_known=not keeper.missed_end,
        survivors=sum(not process.is_dying(pid) for pid in source.tree.pids()),
        attention=keeper.report.state,
        lost_bytes=None if keeper.log.uncounted else keeper.log.lost_bytes,
        oom_kills=source.oom_kills,
        usage=source.usage,
    )
    # the agent alone ended, a while ago, and what it left behind held its terminal open
    late = bool(keeper.missed_end) or time.monotonic() - keeper.died >= LATE_S
    keeper.feed(
        machine.EndCounted(
            ending.code,
            ending.signal,
            ending.error,
            ending.out_of_memory,
            ending.evidence(),
            keeper.ended_at if late and run.state == runs.RUNNING else None,
        )
    )


def _write_exit(keeper: Keeper, effect: machine.WriteExit) -> None:
    if keeper.begun:  # else there was no agent, and perhaps no log
        keeper.control.give_receipts(time.monotonic(), over=True)
        keeper.log.mark(wire.AT_EXIT, keeper.ending.shell_code)
    keeper.ending.write(keeper.run_folder)
    keeper.source.release()  # before the state: nobody looks for the groups of a run that has ended


def _tell_end(keeper: Keeper, effect: machine.TellEnd) -> None:
    keeper.done = True
    state, reason = effect.state, effect.reason
    keeper.watcher.agent_ended()
    keeper.last_words = f"{state}: {reason}" if state == runs.FAILED else state
    keeper.control.clients.tell_all(
        {
            "event": "exit",
            "state": state,
            "reason": reason,
            "changed_at": keeper.journal.changed_at,
            "written_at": keeper.log.written_at(),
            "end": keeper.log.end,
            "exit": keeper.ending.fields(),
        }
    )
    _say_farewell(keeper)
    keeper.log.close()
    runfiles.give_back(keeper.run_folder)


def _say_farewell(keeper: Keeper) -> None:
    clients = keeper.control.clients
    deadline = time.monotonic() + FAREWELL_S
    while clients.unread() and time.monotonic() < deadline:
        for fd, events in keeper.poll.poll(0.05):
            client = clients.by_fd.get(fd)
            if client is not None and events & select.EPOLLOUT:
                clients.flush(client)
    clients.close_all()


EFFECTS: dict[type, Callable[..., None]] = {
    machine.WriteIntent: _write_intent,
    machine.WriteState: _write_state,
    machine.AskAgent: _ask_agent,
    machine.AskTree: _ask_tree,
    machine.LookAtTree: _look_at_tree,
    machine.Force: _force,
    machine.CountEnd: _count_end,
    machine.WriteExit: _write_exit,
    machine.TellEnd: _tell_end,
}
