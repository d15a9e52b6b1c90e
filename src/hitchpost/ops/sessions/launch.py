"""From a spec to a running session: choose the place, write the record, start the first run, type the first prompt."""

from __future__ import annotations

from hitchpost import settings as config
from hitchpost import wire
from hitchpost.errors import HitchpostError, NotDelivered, StartFailed, UsageError, WorkspaceBusy
from hitchpost.model.facts import has_sandbox
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.place import choose
from hitchpost.ops.sessions.sandbox import refuse_mounts, to_store
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.ops.views.neighbours import neighbours
from hitchpost.ops.views.observe import Observation
from hitchpost.runtimes import base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Progress = Callable[[float], None]


def launch(
    home: str,
    spec: SessionSpec,
    *,
    caller: Mapping[str, str],
    actor: str,
    progress: Progress = lambda waited_s: None,
    until_ready: bool = True,
) -> tuple[Observation, list[str]]:
    """The session, whose agent is ready, and notes for the person.

    A first prompt goes to the first run only. Raises what choosing, creating and starting raise, and ``NotDelivered``.
    """
    kind = spec.kind()
    typed, first_argv = spec.prompt, spec.argv(kind)
    if spec.prompt is not None and kind.prompt_args and not spec.prompt_is_typed:
        typed, first_argv = None, spec.argv(kind, spec.prompt)
    if spec.prompt is not None and (why := wire.untypable(spec.prompt.encode("utf-8", "surrogateescape"))):
        raise UsageError(f"the first prompt cannot be sent: {why}", field="prompt")
    settings = config.load()
    config.environment(settings)  # an env file that cannot be read is known before there is a session
    if spec.runtime not in base.RUNTIMES:
        raise UsageError(
            f"unknown runtime {spec.runtime!r}; choose one of: {', '.join(base.RUNTIMES)}", field="runtime"
        )
    box = to_store(spec.runtime, spec.sandbox, settings, tuple(spec.env))
    refuse_mounts(home, box)
    base.load(spec.runtime).check()
    place = choose(
        home,
        spec.folder if spec.workspace is None else spec.workspace,
        branch=spec.branch,
        workspace=spec.workspace,
        exclusive=spec.exclusive,
        share=spec.share,
        progress=progress,
    )
    refuse_mounts(home, box, place.folder, place.workspace)
    record = create(home, spec, settings, actor=actor, place=place, sandbox=box)
    try:
        begun = start(
            home,
            record.id,
            settings,
            caller=caller,
            extra_env=spec.env,
            size=spec.size,
            actor=actor,
            argv=first_argv,
            until_ready=until_ready,
        )
    except WorkspaceBusy:
        from hitchpost.ops.sessions.remove import remove

        remove(home, record.id, actor=actor)
        raise
    except StartFailed as error:
        if kind.install and error.why.startswith("program not found") and not has_sandbox(record.runtime):
            raise StartFailed(record.name, f"{error.why}; to install it: {kind.install}") from None
        raise
    if typed is not None:
        from hitchpost.ops.sessions.send import send

        try:
            send(begun.seen, typed, fresh=True)
        except HitchpostError as error:
            why = error.message.removeprefix(f"not sent to {record.name}: ")
            raise NotDelivered(record.name, record.word, why) from None
    return begun.seen, [*place.notes, *begun.notes, *neighbours(home, record.id, record.folder)]
