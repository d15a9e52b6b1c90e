"""What the next run is started with: its conversation, its command and environment, and who watches it."""

from __future__ import annotations

import os

from hitchpost import wire
from hitchpost.agents import catalog, prepare
from hitchpost.agents.prepare import FORK, FRESH, RESUME, Conversation, Injected
from hitchpost.runspec import RunSpec, Source, WatcherSpec
from hitchpost.settings import Settings
from hitchpost.store.records import Record
from hitchpost.store.session import Session
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from hitchpost.runtimes.base import Sandbox


@value
class Program:
    """What a run executes, before it is known which run it is. ``agent`` is None where nobody watches it.

    ``elsewhere``: what the agent and its watcher need besides is added where the run takes place.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    flags: tuple[tuple[str, str], ...]
    agent: catalog.Agent | None
    sandbox: Sandbox | None
    elsewhere: bool = False


@value
class Claimed:
    """A run that is ours to start: nobody else can, while its lock and the leases are open here."""

    run: int
    folder: str
    lock_fd: int
    lease_fds: tuple[int, ...]
    conversation: Conversation


def converse(stored: Session, agent: catalog.Agent | None, how: str) -> Conversation:
    """Which conversation the run is in, written down before it begins. The caller holds the session's lock."""
    record = stored.record()
    if agent is None or not agent.conversation:
        return Conversation()
    if how == RESUME and record.conversation_begun and record.conversation_id:
        stored.save(replace(record, resumes=record.conversation_id))
        return Conversation(RESUME, record.conversation_id)
    minted = prepare.new_conversation_id() if agent.mints else ""
    fork_of = record.fork_of if how != FRESH and FORK in dict(agent.conversation) else ""
    changed = replace(record, conversation_id=minted or None, conversation_begun=False, supports_resume=False)
    stored.save(replace(changed, can_resume=True, fork_of=fork_of, resumes=""))
    return Conversation(FORK, minted, fork_of) if fork_of else Conversation(FRESH, minted)


def run_spec(
    record: Record, settings: Settings, claimed: Claimed, program: Program, *, source: Source, size: tuple[int, int]
) -> RunSpec:
    """``record`` is that of the session, at the place where it works now."""
    agent, words, injected = program.agent, program.argv, Injected()
    env = {**program.env, wire.RUN_MARK: str(claimed.run)}
    if agent is not None and not program.elsewhere:
        injected = prepare.inject(agent, claimed.folder, env)
        words = prepare.arguments(agent, words, claimed.conversation, injected)
        env |= injected.env
    return RunSpec(
        session=record.id,
        session_folder=os.path.dirname(os.path.dirname(claimed.folder)),
        run=claimed.run,
        argv=tuple(map(os.fsencode, (*injected.before, *catalog.with_flags(program.flags, words, env)))),
        env=_encoded(env),
        folder=record.folder,
        folder_dev=record.folder_dev,
        folder_ino=record.folder_ino,
        lock_fd=claimed.lock_fd,
        lease_fds=claimed.lease_fds,
        source=source,
        cols=size[0],
        rows=size[1],
        grace_s=record.grace_s,
        quit_signal=record.quit_signal,
        quit_group=record.quit_group,
        survivors=record.survivors,
        log_cap_bytes=settings.log_cap_mib << 20,
        pids_max=settings.pids_max,
        memory_max_bytes=settings.memory_max_mib << 20,
        reports=agent is not None and agent.adapter != "",
        watcher=WatcherSpec() if program.elsewhere else _watcher(agent, env, injected),
    )


def _watcher(agent: catalog.Agent | None, env: Mapping[str, str], injected: Injected) -> WatcherSpec:
    if agent is None or not agent.adapter:
        return WatcherSpec()
    argv = tuple(os.fsencode(word) for word in prepare.watcher_command(agent))
    return WatcherSpec(argv, _encoded(prepare.watcher_env(agent, env, injected)))


def _encoded(env: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(text) for name, text in env.items()}
