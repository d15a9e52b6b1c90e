"""What an agent can ask for: each deed is an operation that the command line has too, within the person's limits.

A session belongs to who has started it: its story begins with the actor. Nothing here knows MCP; the docstrings of the
deeds are what the agent reads about them.
"""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hitchpost import settings as config
from hitchpost.agents import catalog
from hitchpost.errors import Refused, UsageError
from hitchpost.mcp.limits import ALL, limits_of
from hitchpost.ops import workspaces
from hitchpost.ops.sessions import environment
from hitchpost.ops.sessions.answer import answer
from hitchpost.ops.sessions.launch import launch
from hitchpost.ops.sessions.prompt import prompt
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.find import find, output_of
from hitchpost.ops.views.listing import listing
from hitchpost.ops.views.session_json import to_json
from hitchpost.ops.views.wait import UNTIL, YOUR_TURN, TimedOut, wait_for_any
from hitchpost.store import story
from hitchpost.store.home import session_folder
from hitchpost.terminal import output
from hitchpost.terminal.emulators import Emulators
from hitchpost.terminal.screen import Losses, RunScreen
from hitchpost.terminal.shown_output import last_lines
from hitchpost.text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hitchpost.mcp.limits import Limits
    from hitchpost.ops.views.observe import Observation
    from hitchpost.ops.views.session_types import Session as SessionJson

LONGEST_WAIT_S = 600.0
MOST_LINES = 2000
MOST_WAITED_FOR = 50
ACTOR = "mcp"


class Coordinator:
    """``session`` is the one that the asking agent runs in; empty when it runs outside of Hitchpost."""

    def __init__(self, home: str, *, folder: str, caller: Mapping[str, str], session: str) -> None:
        self.home, self.folder, self.caller, self.session = home, folder, caller, session
        self.actor = f"{ACTOR}:{session}" if session else ACTOR

    # looking ------------------------------------------------------------------------------------------------------

    def listed(self) -> dict[str, Any]:
        """List the sessions: what each is doing, since when, what it asks, and whether you have started it (own)."""
        self._allowed("list")
        return {"sessions": [self._brief(shape) for shape in self._shapes()]}

    def read(self, session: str, lines: int | None = None) -> dict[str, Any]:
        """Read a session's screen as it is now; with lines, the last lines that it has shown."""
        self._allowed("read")
        seen = find(self.home, session)
        _, folder = output_of(seen, None)
        end = output.bounds(folder)[1]
        if lines is not None:
            if not 1 <= lines <= MOST_LINES:
                raise UsageError(f"expected 1 to {MOST_LINES} lines, but got {lines}")
            text = "".join(last_lines(folder, end, lines)[0])
        else:
            with Emulators() as emulators, closing(RunScreen(folder, emulators, Losses())) as screen:
                screen.advance(end)
                text = screen.text().rstrip()
        return {**self._told(seen), "text": visible(text, keep_newlines=True)}

    def wait(self, sessions: list[str], until: str = YOUR_TURN, timeout_s: float = 50) -> dict[str, Any]:
        """Wait for the first of the sessions that needs you or has ended, and say which and why.

        until is your-turn (it has finished, waits, asks, or reports an error), idle, waiting, blocked or exit. When the
        time is over, timed_out is true: call again. At most 600 seconds.
        """
        self._allowed("wait")
        if until not in UNTIL:
            raise UsageError(f"expected until to be one of {', '.join(UNTIL)}, but got {until!r}")
        if not 1 <= len(sessions) <= MOST_WAITED_FOR:
            raise UsageError(f"expected 1 to {MOST_WAITED_FOR} sessions, but got {len(sessions)}")
        if not 0 <= timeout_s <= LONGEST_WAIT_S:
            raise UsageError(f"expected timeout_s to be 0 to {LONGEST_WAIT_S:g}, but got {timeout_s:g}")
        found = [find(self.home, session) for session in sessions]
        try:
            return {
                "session": self._told(wait_for_any(self.home, found, until, timeout_s=timeout_s)),
                "timed_out": False,
            }
        except TimedOut:
            return {"session": None, "timed_out": True}

    # acting -------------------------------------------------------------------------------------------------------

    def start(
        self,
        agent: str,
        prompt: str,
        name: str | None = None,
        branch: str | None = None,
        folder: str | None = None,
        model: str = "",
        permission_mode: str = "",
        runtime: str = "local",
    ) -> dict[str, Any]:
        """Start an agent (such as claude, codex or opencode) with a task, as a session in the background.

        With branch it works in its own git worktree on that branch, so that several do not disturb each other. The
        folder is relative to yours.
        """
        limits, settings = self._allowed("start"), config.load()
        kind = catalog.load(agent)
        limits.check_agent(kind.name)
        limits.check_permission_mode(permission_mode)
        place = os.path.join(self.folder, folder or "")
        limits.check_folder(place, self.folder)
        limits.check_count(sum(shape["live"] and self._is_own(shape["id"]) for shape in self._shapes()))
        spec = SessionSpec(
            folder=place,
            agent=kind.name,
            branch=branch,
            name=name,
            prompt=prompt,
            model=model,
            permission_mode=permission_mode,
            runtime=runtime,
        )
        kept = (*settings.pass_env, *kind.env_read)
        seen, notes = launch(self.home, spec, caller=environment.of_hub(self.caller, kept), actor=self.actor)
        return {**self._told(seen), "notes": notes}

    def prompt(self, session: str, text: str) -> dict[str, Any]:
        """Give a session its next prompt. Refused while it asks something; confirmed says whether the agent has it.

        waits: it gets it when it is done with what it works on.
        """
        settings, seen = config.load(), self._driven("prompt", session)
        kept = (*settings.pass_env, *self._env_read(seen.record.agent))
        caller = environment.of_hub(self.caller, kept)
        done = prompt(self.home, seen.record.id, text, actor=self.actor, caller=caller)
        proof = {"proof": done.receipt.proof, "confirmed": bool(done.receipt.proof), "waits": done.receipt.waits}
        return {**self._told(done.seen), **proof, "started_again": done.started, "notes": list(done.notes)}

    def answer(self, session: str, choice: str, request: str = "", message: str = "") -> dict[str, Any]:
        """Answer what a session asks: yes, no, always, one of its options, or a text. It counts once.

        request is the id of what is asked, so that nothing else is answered; message says why not.
        """
        seen = self._driven("answer", session)
        return self._told(answer(self.home, seen.record.id, choice, actor=self.actor, request=request, message=message))

    def stop(self, session: str) -> dict[str, Any]:
        """End a session and everything that it has started. Its files and its history stay."""
        seen = self._driven("stop", session)
        return self._told(stop(self.home, seen.record.id, actor=self.actor))

    def make_workspace(self, branch: str, folder: str | None = None) -> dict[str, Any]:
        """Make a git worktree on a branch, for you or for a session that is started with that branch."""
        limits = self._allowed("workspace")
        place = os.path.join(self.folder, folder or "")
        limits.check_folder(place, self.folder)
        made, notes = workspaces.make(self.home, place, branch)
        return {"id": made.id, "name": made.name, "path": made.path, "branch": made.branch, "notes": notes}

    # ------------------------------------------------------------------------------------------------------------

    def _allowed(self, deed: str) -> Limits:
        """The limits as they are now: a person who changes them is not told to start everything again."""
        limits = limits_of(config.load())
        limits.check_deed(deed)
        return limits

    def _driven(self, deed: str, session: str) -> Observation:
        limits, seen = self._allowed(deed), find(self.home, session)
        if seen.record.id == self.session:
            raise Refused(f"{seen.record.name} is the session that you run in yourself")
        if limits.reach != ALL and not self._is_own(seen.record.id):
            raise Refused(
                f"{seen.record.name} was started by somebody else",
                'the person can allow it with reach = "all" below [mcp] in config.toml',
            )
        return seen

    @staticmethod
    def _env_read(agent: str) -> tuple[str, ...]:
        return catalog.load(agent).env_read if agent in catalog.names() else ()

    def _is_own(self, session: str) -> bool:
        return story.begun_by(session_folder(self.home, session)) == self.actor

    def _shapes(self) -> list[SessionJson]:
        return [row.shape for row in listing(self.home, shapes=True)]

    def _told(self, seen: Observation) -> dict[str, Any]:
        return self._brief(to_json(seen, datetime.now(UTC)))

    def _brief(self, shape: SessionJson) -> dict[str, Any]:
        """What an agent needs of a session, in few words: they cost it."""
        report: Mapping[str, Any] = shape["report"] or {}
        asked = {name: report[name] for name in ("request", "options") if report.get(name)}
        told = {
            name: shape[name] for name in ("id", "name", "agent", "label", "attention", "headline", "detail", "since")
        }
        place = {"folder": shape["workspace"]["path"], "branch": shape["workspace"]["branch"]}
        return {**told, **asked, **place, "live": shape["live"], "own": self._is_own(shape["id"])}
