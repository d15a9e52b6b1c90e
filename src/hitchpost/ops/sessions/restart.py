"""Restarting: a live run is stopped first; then the next run starts in the same folder, or in another workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hitchpost.agents import catalog
from hitchpost.errors import HitchpostError, Refused
from hitchpost.model import run as runs
from hitchpost.model.facts import has_container, is_elsewhere
from hitchpost.ops.sessions import first_prompt
from hitchpost.ops.sessions.caller_inside import refuse_inside
from hitchpost.ops.sessions.give_up import give_up
from hitchpost.ops.sessions.place import choose, move
from hitchpost.ops.sessions.recover import RECOVERY, recover
from hitchpost.ops.sessions.sandbox import bring_out, refuse_mounts
from hitchpost.ops.sessions.start import Begun, start
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.workplace import current
from hitchpost.runtimes import base, keepers
from hitchpost.settings import Settings, environment
from hitchpost.store.home import run_folder
from hitchpost.store.records import Record
from hitchpost.values import replace
from hitchpost.workspaces import snapshot
from hitchpost.workspaces.store import Workspace


def restart(
    home: str,
    session: str,
    settings: Settings,
    *,
    actor: str,
    caller: Mapping[str, str],
    size: tuple[int, int] = (80, 24),
    workspace: str | None = None,
    again: bool = False,
    force: bool = False,
    progress: Callable[[float], None] = lambda waited_s: None,
) -> Begun:
    """Raises what ``stop`` and ``start`` raise. A folder that is gone, or settings that are wrong, stop nothing.

    What an ended run left behind is ended too: it would work in the same folder as the next run. ``workspace`` moves
    the session there; ``again`` sends its first prompt once more. Raises ``NotDelivered``, too, then. ``force`` gives
    a pod up that nobody reaches; ``give_up.risk`` says what may come of that.
    """
    if force:
        give_up(home, session, actor=actor)
    seen = recover(home, session, actor=RECOVERY)
    refuse_inside(seen, "restart")
    if instead := base.load(seen.record.runtime).cannot_start_again:
        raise Refused(f"{seen.record.name} was adopted, so its command is unknown", instead)
    environment(settings)
    catalog.agent_of(seen.record.agent, seen.record.argv)  # a file that is wrong stops nothing
    if has_container(seen.record.runtime):
        base.load(seen.record.runtime).check(seen.folder)  # nor does an engine that is away
    prompt = first_prompt.again(seen.record, seen.folder) if again else first_prompt.NONE
    if workspace is None:
        place, (record, known) = None, current(home, seen)
    else:
        record, known = seen.record, None
        if is_elsewhere(record.runtime):
            raise Refused(f"{record.name} has a workspace of its own, in its pod, and cannot be moved to another one")
        place = choose(home, workspace, workspace=workspace, share=record.share, session=session)
        refuse_mounts(home, record.sandbox, place.folder, place.workspace)
    with keepers.Ahead(run_folder(seen.folder, seen.facts.next_run), wanted=record.runtime in base.KEPT_AT_ONCE):
        if seen.facts.state != runs.CREATED:
            seen = stop(home, session, actor=actor, by=runs.RESTART, reason="restart", progress=progress)
        notes = _kept(home, record, known)
        if place is not None:
            notes = [*bring_out(home, seen.record), *place.notes]
            move(home, seen, place, actor=actor)
        how = {"actor": actor, "caller": caller, "size": size, "reason": "restart", "argv": prompt.argv}
        begun = start(home, session, settings, **how)  # type: ignore[arg-type]
    first_prompt.deliver(begun.seen, prompt)
    return replace(begun, notes=(*notes, *begun.notes))


def _kept(home: str, record: Record, workspace: Workspace | None) -> list[str]:
    """Snapshot a managed workspace that is dirty. Failing to is no reason not to restart: nothing is deleted."""
    if workspace is None or not workspace.managed or record.share:
        return []
    try:
        ref = snapshot.take(home, workspace, f"before a restart of {record.name}")
    except HitchpostError as error:
        return [f"no snapshot was taken: {error}"]
    return [] if ref is None else [f"uncommitted work is kept in {ref}"]
