"""``hitch run``: create a session and start its first run. Loads no click: it must answer like a shell builtin."""

from __future__ import annotations

import os
import sys
import time

from hitchpost.cli.caller import Delivering, current_folder, print_json, progress, say, terminal_size, typed_in
from hitchpost.cli.options import FLAG, MANY, NUMBER, Option, as_click, parse
from hitchpost.errors import EndedAtOnce, UsageError
from hitchpost.model.limits import WAIT, WHEN_LIMIT
from hitchpost.runtimes import base, keepers
from hitchpost.store.home import new_id, open_home, run_folder, session_folder
from hitchpost.text import visible
from hitchpost.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    import click

    from hitchpost.ops.sessions.spec import SessionSpec
    from hitchpost.ops.views.observe import Observation

HELP = """Start AGENT (see `hitch agents`), or any program after `--`, as a session in the background.

\b
hitch run claude --name auth --prompt "Fix the login test"
hitch run claude --branch fix-auth
hitch run -- make -j8
hitch run claude --wait --json --prompt "Is there a test for login?"

\b
With --wait the exit code says what became of it: 0 finished, 10 it asks something,
11 a usage limit, 12 it failed, 1 the time is up. The session stays as it is.
"""


def _complete_agents(ctx: object, param: object, incomplete: str) -> list[str]:
    from hitchpost.agents import catalog

    return [name for name in catalog.names() if name.startswith(incomplete)]


def _complete_workspaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from hitchpost.cli.common import complete_workspaces

    return complete_workspaces(ctx, param, incomplete)


OPTIONS = (
    Option("--name", "A name that no other session has. Default: a generated one."),
    Option("--description", "One line to show in hitch ps; else the prompt's first.", default=""),
    Option("--branch", "Work on a branch of this repository, in its own worktree.", metavar="B"),
    Option(
        "--workspace",
        "Work in a workspace (see `hitch workspace ls`), or in any folder.",
        metavar="W",
        complete=_complete_workspaces,
    ),
    Option("--here", "Work in the current folder (the default).", FLAG),
    Option("--folder", "Work in this folder; with a context, one of the hub's machine.", metavar="DIR"),
    Option("--repo", "Work in a clone of this repository, in a pod of the hub's cluster.", metavar="URL"),
    Option("--exclusive", "Lease the folder, so that no other session can work there.", FLAG),
    Option("--share", "Join a workspace that is in use, as a reader.", FLAG),
    Option(
        "--runtime",
        "Where it runs; acp is here, without a screen of its own.",
        default="local",
        choices=(*base.RUNTIMES, "acp"),
    ),
    Option("--image", "docker: the container's image.", metavar="I"),
    Option("--mount", "docker: share a folder or file.", MANY, "mounts", metavar="HOST:INSIDE[:ro]"),
    Option("--network", "docker: none, bridge, host, or a network's name.", metavar="N"),
    Option("--memory", "docker: memory limit, such as 512m or 4g.", metavar="SIZE"),
    Option("--cpus", "docker: CPU limit.", NUMBER, metavar="X", within=(0.01, 1024)),
    Option("--config", "docker: a folder of settings, read-only at /config.", metavar="FOLDER"),
    Option("--keep-failed", "docker: keep the container when the agent cannot be started.", FLAG),
    Option(
        "--env",
        "Set an environment variable; NAME alone passes your own value.",
        MANY,
        "env_items",
        metavar="NAME[=VALUE]",
    ),
    Option(
        "--permission-mode", "The agent's permission mode, by its own name, such as plan.", metavar="MODE", default=""
    ),
    Option("--model", "The agent's model, by its own name for it.", metavar="NAME", default=""),
    Option("--idle-after", "Silence that counts as idle, such as 45s or 5m.", metavar="DURATION"),
    Option(
        "--when-limit",
        "At a usage limit: stop, or wait for its end and go on (needs the hub).",
        choices=WHEN_LIMIT,
    ),
    Option("--prompt", "The first prompt; - reads it from standard input."),
    Option(
        "--prompt-file",
        "Type the first prompt from a file or standard input (-), so that no process list shows it.",
        metavar="FILE",
    ),
    Option("--attach", "Enter the session's terminal at once.", FLAG),
    Option("--wait", "Wait until the prompt is dealt with, or a program has ended, and print the answer.", FLAG),
    Option("--timeout", "With --wait: give up after this time; the session goes on.", metavar="DURATION"),
    Option("--json", "Print JSON.", FLAG, "as_json"),
)


@value
class RunOptions:
    """A command line that was understood: what the options above say, the agent, and what stands behind ``--``."""

    agent: str | None
    command: tuple[str, ...]
    name: str | None
    description: str
    branch: str | None
    workspace: str | None
    here: bool
    folder: str | None
    repo: str | None
    exclusive: bool
    share: bool
    runtime: str
    image: str | None
    mounts: tuple[str, ...]
    network: str | None
    memory: str | None
    cpus: float | None
    config: str | None
    keep_failed: bool
    env_items: tuple[str, ...]
    permission_mode: str
    model: str
    idle_after: str | None
    when_limit: str | None
    prompt: str | None
    prompt_file: str | None
    attach: bool
    wait: bool
    timeout: str | None
    as_json: bool


def understood(words: list[str]) -> RunOptions | None:
    """What ``run`` takes, of a command line; None when click should look at it."""
    words, command = _apart(words)
    parsed = parse(OPTIONS, words)
    if parsed is None or len(parsed[1]) > 1:
        return None
    values, rest = parsed
    return RunOptions(**values, agent=rest[0] if rest else None, command=command)


def _apart(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Everything behind ``--`` is the command, or further arguments of the agent."""
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], tuple(words[cut + 1 :])


def run(options: RunOptions) -> int:
    """Returns the exit code: of the session's run with ``--attach``, of what became of it with ``--wait``, else 0."""
    refuse_contradictions(options)
    timeout_s = None if options.timeout is None else seconds_in("--timeout", options.timeout)
    began = time.time()
    home, session = open_home(), new_id()
    folder = run_folder(session_folder(home, session), 1)
    with keepers.Ahead(folder, wanted=options.runtime in base.KEPT_AT_ONCE):
        # what takes long to load is loaded beside the keeper
        from hitchpost.ops.sessions.launch import launch

        try:
            seen, notes = launch(
                home,
                _spec(options),
                actor="cli",
                caller=os.environ,
                progress=progress(options.branch or "workspace", "making it ready"),
                until_ready=not options.attach,
                delivering=Delivering,
                new_id=lambda: session,
            )
        except EndedAtOnce as error:
            if not options.wait:
                raise
            from hitchpost.ops.views.observe import observe

            seen, notes = observe(home, session), [str(error)]  # what became of it is what is waited for
    notes = [*notes, *watched_by_nobody(home, seen, options.when_limit)]
    if options.wait:
        from hitchpost.cli.outcome import told

        for note in notes:
            say(note)
        return told(home, seen, began, timeout_s=timeout_s, as_json=options.as_json)
    _show(seen, notes, as_json=options.as_json, attach=options.attach)
    if not options.attach:
        return 0
    from hitchpost.cli.attach import attach_to
    from hitchpost.terminal.emulators import Emulators

    sys.stdout.flush()
    with Emulators() as emulators:
        return attach_to(home, session, emulators)


def watched_by_nobody(home: str, seen: Observation, when_limit: str | None) -> list[str]:
    """What a person should know whose agent waits for the end of a limit, as they have just said or as it was set."""
    if seen.record.when_limit != WAIT:
        return []
    from hitchpost.hub.client import is_up
    from hitchpost.ops.views.outcome import has_turns

    if is_up(home) or not (when_limit or has_turns(seen)):
        return []
    return ["no hub is running, and only a hub goes on at the end of a usage limit: hitch up"]


def refuse_contradictions(options: RunOptions) -> None:
    given = {
        "--branch": options.branch is not None,
        "--workspace": options.workspace is not None,
        "--here": options.here,
    }
    places = [word for word, is_given in given.items() if is_given]
    if len(places) > 1:
        raise UsageError(f"{' and '.join(places)} cannot be combined")
    for word, is_given in (("--folder", options.folder is not None), ("--repo", options.repo is not None)):
        others = [place for place in places if place != "--branch"]
        if is_given and others:
            raise UsageError(f"{word} and {others[0]} cannot be combined")
    if options.folder is not None and options.repo is not None:
        raise UsageError("--folder and --repo cannot be combined")
    if options.exclusive and options.share:
        raise UsageError("--exclusive and --share cannot be combined")
    if options.wait and options.attach:
        raise UsageError("--wait and --attach cannot be combined")
    if options.timeout is not None and not options.wait:
        raise UsageError("--timeout needs --wait")
    if options.wait and options.agent is not None and options.prompt is None and options.prompt_file is None:
        raise UsageError("--wait needs --prompt or --prompt-file: an agent without a prompt waits for one for ever")
    if options.prompt is not None and options.prompt_file is not None:
        raise UsageError("--prompt and --prompt-file cannot be combined")


def _spec(options: RunOptions) -> SessionSpec:
    """The session that is asked for, with what only this process knows: folder, environment, terminal, files."""
    from hitchpost.ops.sessions import environment
    from hitchpost.ops.sessions.spec import SandboxOptions, SessionSpec

    prompt, is_typed = first_prompt(options)
    idle_after = options.idle_after
    return SessionSpec(
        folder=options.workspace or options.folder or current_folder(),
        repository=options.repo or "",
        agent=options.agent,
        command=options.command,
        branch=options.branch,
        workspace=options.workspace,
        exclusive=options.exclusive,
        share=options.share,
        name=options.name,
        description=options.description,
        runtime=options.runtime,
        prompt=prompt,
        prompt_is_typed=is_typed,
        env=environment.parse(options.env_items, os.environ),
        size=terminal_size(),
        sandbox=SandboxOptions(
            options.image,
            options.mounts,
            options.network,
            options.memory,
            options.cpus,
            options.config,
            options.keep_failed,
        ),
        permission_mode=options.permission_mode,
        model=options.model,
        when_limit=options.when_limit or "",
        idle_after_s=None if idle_after is None else seconds_in("--idle-after", idle_after),
    )


def _show(seen: Observation, notes: Iterable[str], *, as_json: bool, attach: bool) -> None:
    for note in notes:
        say(note)
    if as_json:
        from datetime import UTC, datetime

        from hitchpost.ops.views.session_json import to_json

        print_json(to_json(seen, datetime.now(UTC)))
    else:
        from hitchpost.cli.words import started

        record = seen.record
        print(started(record.name, record.index, record.id, seen.facts.run))
        if sys.stdout.isatty() and not attach:
            print(f"hitch attach {record.word} enters its terminal, hitch ps shows who needs you")


def first_prompt(options: RunOptions) -> tuple[str | None, bool]:
    """The first prompt, and whether it must be typed, because it came from where no process list shows it."""
    prompt_file = "-" if options.prompt == "-" else options.prompt_file
    return (options.prompt, False) if prompt_file is None else (_read(prompt_file), True)


def _read(path: str) -> str:
    from hitchpost.store import files

    try:
        text = typed_in() if path == "-" else files.read_bytes(path, follow=True).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"cannot read the first prompt from {path}: {(error.strerror or '').lower()}") from None
    return text.removesuffix("\n")


def seconds_in(word: str, text: str) -> float:
    from hitchpost.model.durations import seconds_of

    found = seconds_of(f"{text}s" if text.isdecimal() else text)
    if found is None:
        raise UsageError(f"expected {word} to be a duration such as 45s, 5m or 1h 30m, but got {visible(text[:80])!r}")
    return found


def __getattr__(name: str) -> Any:
    """``command`` is made when click asks for it."""
    if name != "command":
        raise AttributeError(name)
    import click

    class RunCommand(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            args, ctx.obj = _apart(args)
            return super().parse_args(ctx, args)

    def call(**values: Any) -> None:
        sys.exit(run(RunOptions(command=click.get_current_context().obj, **values)))

    for option in reversed(OPTIONS):
        call = as_click(option)(call)
    call = click.argument("agent", required=False, shell_complete=_complete_agents)(call)
    return click.command("run", cls=RunCommand, help=HELP)(call)
