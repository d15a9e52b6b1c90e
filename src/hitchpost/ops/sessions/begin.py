"""Beginning a run that is claimed: what it executes, and the keeper that gets it. A pod does the same for its own."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.agents import catalog, prepare
from hitchpost.errors import StartFailed
from hitchpost.model.facts import is_elsewhere
from hitchpost.ops.sessions import environment
from hitchpost.ops.sessions.next_run import Claimed, Program, run_spec
from hitchpost.ops.sessions.recover import RECOVERY, recover, say_why
from hitchpost.runspec import RunSpec, Source
from hitchpost.runtimes import base
from hitchpost.settings import Settings
from hitchpost.store import files
from hitchpost.store.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def program_of(
    home: str,
    record: Record,
    settings: Settings,
    caller: Mapping[str, str],
    extra_env: Mapping[str, str],
    argv: tuple[str, ...] | None,
) -> Program:
    """What a run of ``record`` executes. Of one that takes place elsewhere, only what is added to what is there: its
    pod makes the rest of it, in the same way."""
    elsewhere = is_elsewhere(record.runtime)
    env = environment.of_run({} if elsewhere else caller, settings, extra_env, record.id, 0, record.folder)
    env[wire.HOME_MARK] = files.folder_id(home)
    flags, agent = catalog.env_flags(record.agent), catalog.agent_of(record.agent, record.argv)
    words = argv or record.argv
    if agent is not None and not elsewhere:
        words = prepare.with_options(agent, words, permission_mode=record.permission_mode, model=record.model)
    return Program(words, env, () if elsewhere else flags, agent, None, elsewhere)


def start_keeper(
    home: str,
    record: Record,
    settings: Settings,
    claimed: Claimed,
    program: Program,
    source: Source,
    size: tuple[int, int],
) -> RunSpec:
    """Hand the run over to a keeper, with its locks. What was started. Raises ``StartFailed``."""
    try:
        spec = run_spec(record, settings, claimed, program, source=source, size=size)
        started = base.load(record.runtime).start(spec, program.sandbox)
    except OSError as error:
        started = base.Started(None, f"cannot start a keeper: {error}")
    finally:
        for fd in (claimed.lock_fd, *claimed.lease_fds):
            os.close(fd)
    if started.error is not None:
        if not started.kept:
            say_why(claimed.folder, started.error)
        recover(home, record.id, actor=RECOVERY)
        raise StartFailed(record.name, started.error, started.field)
    return spec
