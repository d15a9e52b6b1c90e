"""From a wish to a running session: choose the place, write the record, start the first run, type the first prompt."""

from __future__ import annotations

from hitchpost import settings as config
from hitchpost import wire
from hitchpost.agents import catalog
from hitchpost.errors import HitchpostError, NotDelivered, StartFailed, UsageError, WorkspaceBusy
from hitchpost.model.facts import WITHOUT_SANDBOX
from hitchpost.ops.sessions.create import Wish, create
from hitchpost.ops.sessions.place import choose
from hitchpost.ops.sessions.sandbox import Asked, refuse_mounts, wanted
from hitchpost.ops.sessions.start import start
from hitchpost.ops.views.neighbours import neighbours
from hitchpost.ops.views.observe import Seen
from hitchpost.runtimes import base
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Progress = Callable[[float], None]

NOTHING: Mapping[str, str] = {}
THE_USUAL = Asked()


@value
class Request:
    """What a person asks for. ``command`` is a whole one, or further arguments of ``agent``.

    A first prompt is one of those, too, where the agent takes it that way, unless it is to be typed.
    """

    folder: str
    agent: str | None = None
    command: tuple[str, ...] = ()
    branch: str | None = None
    workspace: str | None = None
    exclusive: bool = False
    share: bool = False
    name: str | None = None
    description: str = ""
    runtime: str = "local"
    prompt: str | None = None
    prompt_is_typed: bool = False
    env: Mapping[str, str] = NOTHING
    size: tuple[int, int] = (80, 24)
    sandbox: Asked = THE_USUAL
    idle_after_s: float | None = None


def launch(
    home: str,
    request: Request,
    *,
    caller: Mapping[str, str],
    actor: str,
    progress: Progress = lambda waited_s: None,
    until_ready: bool = True,
) -> tuple[Seen, list[str]]:
    """The session, whose agent is ready, and notes for the person.

    A first prompt goes to the first run only. Raises what choosing, creating and starting raise, and ``NotDelivered``.
    """
    if request.agent is None and not request.command:
        raise UsageError("say what to run: hitch run AGENT, or hitch run -- COMMAND …; hitch agents lists the agents")
    kind = catalog.load(request.agent) if request.agent is not None else catalog.unknown(request.command)
    argv = kind.command(request.command) if request.agent is not None else request.command
    typed, first_argv = request.prompt, argv
    if request.prompt is not None and kind.prompt_args and not request.prompt_is_typed:
        typed, first_argv = None, kind.command(request.command, request.prompt)
    if request.prompt is not None and (why := wire.untypable(request.prompt.encode("utf-8", "surrogateescape"))):
        raise UsageError(f"the first prompt cannot be sent: {why}", field="prompt")
    settings = config.load()
    config.environment(settings)  # an env file that cannot be read is known before there is a session
    if request.runtime not in base.RUNTIMES:
        raise UsageError(f"unknown runtime {request.runtime!r}; known are: {', '.join(base.RUNTIMES)}", field="runtime")
    box = wanted(request.runtime, request.sandbox, settings, tuple(request.env))
    refuse_mounts(home, box)
    base.load(request.runtime).check()
    place = choose(
        home,
        request.folder if request.workspace is None else request.workspace,
        branch=request.branch,
        workspace=request.workspace,
        exclusive=request.exclusive,
        share=request.share,
        progress=progress,
    )
    refuse_mounts(home, box, place.folder, place.workspace)
    wish = Wish(
        kind,
        argv,
        place.folder,
        request.name,
        request.description,
        request.runtime,
        workspace_id=place.workspace_id,
        branch=place.branch,
        base=place.base,
        exclusive=place.workspace is not None and not request.share,
        share=request.share,
        sandbox=box,
        idle_after_s=request.idle_after_s,
    )
    record = create(home, wish, settings, actor=actor)
    try:
        begun = start(
            home,
            record.id,
            settings,
            caller=caller,
            extra_env=request.env,
            size=request.size,
            actor=actor,
            argv=first_argv,
            until_ready=until_ready,
        )
    except WorkspaceBusy:
        from hitchpost.ops.sessions.remove import remove

        remove(home, record.id, actor=actor)
        raise
    except StartFailed as error:
        if kind.install and error.why.startswith("program not found") and record.runtime in WITHOUT_SANDBOX:
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
