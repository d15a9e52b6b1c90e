"""From a spec to a running session: choose the place, write the record, start the first run, type the first prompt."""

from __future__ import annotations

from hitchpost import settings as config
from hitchpost.agents.prepare import FORK, FRESH
from hitchpost.errors import StartFailed, UsageError, WorkspaceBusy
from hitchpost.model.facts import has_sandbox, is_elsewhere
from hitchpost.ops.sessions import first_prompt
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.place import Place, choose, choose_elsewhere
from hitchpost.ops.sessions.sandbox import refuse_mounts, to_store
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes import base
from hitchpost.store.home import new_id, session_folder
from hitchpost.store.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from hitchpost.ops.sessions.create import Making

    Progress = Callable[[float], None]


def launch(
    home: str,
    spec: SessionSpec,
    *,
    caller: Mapping[str, str],
    actor: str,
    progress: Progress = lambda waited_s: None,
    until_ready: bool = True,
    delivering: Callable[[str], AbstractContextManager[None]] | None = None,
    new_id: Callable[[], str] = new_id,
    making: Making | None = None,
    begun: Callable[[str], None] = lambda session: None,
) -> tuple[Observation, list[str]]:
    """The session, whose agent is ready, and notes for the person.

    ``delivering`` is entered with the session's name while its first prompt is typed. ``making`` is that of ``create``.
    ``begun`` is called with the session's id when its run has begun: its agent is not ready then, and has no prompt.
    A first prompt goes to the first run only. Raises what choosing, creating and starting raise, and ``NotDelivered``.
    """
    spec = spec.spoken_to()
    kind = spec.kind()
    spec.check_options(kind)  # before there is a worktree
    first_prompt.check(spec.prompt)
    settings = config.load()
    config.environment(settings)  # an env file that cannot be read is known before there is a session
    if spec.runtime not in base.RUNTIMES:
        raise UsageError(
            f"unknown runtime {spec.runtime!r}; choose one of: {', '.join(base.RUNTIMES)}", field="runtime"
        )
    if spec.repository and not is_elsewhere(spec.runtime):
        raise UsageError(
            f"a repository is cloned for a session in a pod only, and this one is on the runtime {spec.runtime}",
            "name a folder to work in instead",
            field="repo",
            cli_hint="use --folder DIR, or --runtime pod with a hub that has a cluster",
        )
    box = to_store(spec.runtime, spec.sandbox, settings, tuple(spec.env))
    refuse_mounts(home, box)
    base.load(spec.runtime).check()
    place = _place(home, spec, progress)
    refuse_mounts(home, box, place.folder, place.workspace)
    record = create(home, spec, settings, actor=actor, place=place, sandbox=box, new_id=new_id, making=making)
    prompt = first_prompt.NONE
    if spec.prompt is not None:
        prompt = first_prompt.prepared(kind, record, spec.prompt, typed=spec.prompt_is_typed)
        Session(session_folder(home, record.id), actor=actor).keep_prompt(spec.prompt, typed=spec.prompt_is_typed)
    try:
        started = start(
            home,
            record.id,
            settings,
            caller=caller,
            extra_env=spec.env,
            size=spec.size,
            actor=actor,
            argv=prompt.argv,
            until_ready=until_ready,
            conversation=FORK if spec.fork_of else FRESH,
            begun=lambda: begun(record.id),
        )
    except WorkspaceBusy:
        from hitchpost.ops.sessions.remove import remove

        remove(home, record.id, actor=actor)
        raise
    except StartFailed as error:
        if kind.install and error.why.startswith("program not found") and not has_sandbox(record.runtime):
            raise StartFailed(record.name, f"{error.why}; to install it: {kind.install}") from None
        raise
    if delivering is None or prompt.typed is None:
        first_prompt.deliver(started.seen, prompt)
    else:
        with delivering(record.name):
            first_prompt.deliver(started.seen, prompt)
    if is_elsewhere(record.runtime):
        return started.seen, [*place.notes, *started.notes]
    from hitchpost.ops.views.neighbours import neighbours  # the agent has begun meanwhile

    return started.seen, [*place.notes, *started.notes, *neighbours(home, record.id, record.folder)]


def _place(home: str, spec: SessionSpec, progress: Progress) -> Place:
    how = {"branch": spec.branch, "workspace": spec.workspace, "exclusive": spec.exclusive, "share": spec.share}
    if is_elsewhere(spec.runtime):
        return choose_elsewhere(spec.repository, **how)  # type: ignore[arg-type]
    if spec.profile:
        raise UsageError("a profile is for a session in a pod", field="profile")
    folder = spec.folder if spec.workspace is None else spec.workspace
    return choose(home, folder, progress=progress, **how)  # type: ignore[arg-type]
