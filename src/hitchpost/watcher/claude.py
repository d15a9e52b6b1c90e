"""Claude Code: its own reports first, its hooks for what they leave out, and its session file for dialogs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from dataclasses import dataclass
from typing import Any

from hitchpost.errors import NOT_READ
from hitchpost.model.attention import (
    AT_PROMPT,
    BLOCKED,
    DIALOG,
    DONE,
    ERROR,
    LIMIT,
    PERMISSION,
    QUESTION,
    WORKING,
    plain,
)
from hitchpost.values import replace
from hitchpost.watcher.adapter import HOOKS, OSC, SCREEN, Adapter
from hitchpost.watcher.claude_usage import Counting
from hitchpost.watcher.key_answers import ASKED_S

FILE = "session file"
ALLOW, DENY = "yes", "no"
MOST_FILE_BYTES = 1 << 16
FILE_AGAIN_S = 1.0
UNTIL = re.compile(r"resets (?:at |on )?(?P<text>[^·\n]{1,80})")
OWN_PROMPT = "<task-notification>"
CHANGED = "but not byte for byte"
LIMIT_WORDS = ("usage limit", "limit reached", "rate limit", "rate_limit", "out of extra usage")


@dataclass(frozen=True, slots=True)
class Asked:
    """A permission that a hook waits for. ``about``: the end of what its dialog is reported with."""

    text: str
    about: str
    decision: asyncio.Future[dict[str, Any] | None]


class Claude(Adapter):
    """Several permissions can be asked at once. Its dialogs come one after the other, its hooks in any order.

    ``_requests`` has those whose hooks wait, ``_shown`` the name of the one whose dialog is open, as far as known.
    """

    sources = (OSC, HOOKS, FILE, SCREEN)

    def __init__(self, watching: Any) -> None:
        super().__init__(watching)
        self._requests: dict[str, Asked] = {}
        self._dialog, self._shown, self._question = "", "", ""
        self._again: asyncio.TimerHandle | None = None
        self._has_worked = False
        self._counting = Counting(watching.usage)
        self._over = 0
        """Which writing of its session file told of something that is over since."""

    # its hooks ----------------------------------------------------------------------------------------------------

    async def on_hook(self, name: str, told: dict[str, Any]) -> dict[str, Any] | None:
        session = str(told.get("session_id") or "")
        if name == "SessionStart" and session:
            self.watching.conversation(session, begun=told.get("source") == "resume")
        elif name == "UserPromptSubmit":
            self.watching.conversation(session, begun=True)
            self.watching.put(HOOKS, WORKING)
            self._on_prompt(str(told.get("prompt", "")), name)
        elif name == "Stop":
            tasks = [task for task in _objects(told.get("background_tasks")) if task.get("status") in (None, "running")]
            names = ", ".join(str(task.get("description") or task.get("command") or "") for task in tasks)
            self.watching.answered(str(told.get("last_assistant_message") or ""))
            self.watching.put(HOOKS, DONE, background=len(tasks), message=names or first_line(told))
            self.watching.start(self._counting.count(told))
        elif name == "StopFailure":
            text = str(told.get("last_assistant_message") or told.get("error") or "")
            kind, resets = is_limit(told, text), UNTIL.search(text)
            until = resets["text"].strip() if kind and resets else ""
            self.watching.put(HOOKS, ERROR, message=text, kind=kind, until=until)
            self.watching.start(self._counting.count(told))
        elif name == "PermissionRequest":
            return await self._permission(told)
        return None

    def _on_prompt(self, text: str, by: str) -> None:
        """It tells the text that its model gets. What a task of its own has to say comes the same way."""
        if not text.startswith(OWN_PROMPT):
            self.prompted(text, by if text == self.typed else f"{by}, {CHANGED}")

    async def _permission(self, told: dict[str, Any]) -> dict[str, Any] | None:
        """Hold the hook until somebody answers here, or the question is gone because somebody pressed a key."""
        tool, wanted = str(told.get("tool_name") or ""), told.get("tool_input")
        if tool == "AskUserQuestion":
            self._question = _question(wanted)
            if not self._reports_otherwise():
                self._tell_question()
            return None
        number, text = self.watching.new_request(), asked(tool, wanted)
        about = plain(text).removeprefix(f"{tool}: ")
        request = self._requests[number] = Asked(text, about, asyncio.get_running_loop().create_future())
        if not self._reports_otherwise():
            self._tell_asked()
        try:
            decision = await request.decision
        finally:
            self._requests.pop(number, None)
            if self._is_open():
                self._tell_asked(now=True)
        if decision is None:
            return None
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

    def _reports_otherwise(self) -> bool:
        """Whether its own report is that it asks nothing: that follows in a moment, or the hook, a program that had to
        start, comes after its dialog was answered in the terminal."""
        said = self.watching.evidence.get(OSC)
        return said is not None and said.state != BLOCKED

    def _tell_question(self) -> None:
        self.watching.put(HOOKS, BLOCKED, kind=QUESTION, message=self._question)

    def _is_open(self) -> bool:
        """Whether its own report is that it asks for a permission."""
        said = self.watching.evidence.get(OSC)
        return said is not None and (said.state, said.kind) == (BLOCKED, PERMISSION)

    def _tell_asked(self, *, now: bool = False) -> bool:
        """What is told is what an answer counts for: the text of the very request, whatever its report says.

        ``now``: the one before was answered, and so the next is asked. False when there is none.
        """
        waiting = self._waits()
        if not waiting:
            return False
        self._shown = self._request_shown() or self._shown
        name = self._shown if self._shown in waiting else next(iter(waiting))
        if self._is_open():
            said = self.watching.evidence[OSC]
            self.watching.evidence[OSC] = replace(said, message="", at=time.monotonic() if now else said.at)
        options = (ALLOW, DENY)
        self.watching.put(HOOKS, BLOCKED, kind=PERMISSION, message=waiting[name].text, request=name, options=options)
        return True

    def _on_dialog(self, report: dict[str, Any]) -> dict[str, Any]:
        """A dialog is open. If it is another than before, that one was answered. The report, as it is to be told."""
        self._dialog = str(report.get("message") or "")
        if (shown := self._request_shown()) != self._shown and (before := self._requests.get(self._shown)) is not None:
            _end(before)
        self._shown = shown
        return {**report, "message": ""} if self._tell_asked() else report

    def _request_shown(self) -> str:
        """Which of those that wait has its dialog open; empty when that is not known."""
        return next((name for name, request in self._waits().items() if _is_about(self._dialog, request)), "")

    def _waits(self) -> dict[str, Asked]:
        return {name: request for name, request in self._requests.items() if not request.decision.done()}

    def on_osc7501(self, report: dict[str, Any] | None) -> None:
        if report is not None and report["state"] == BLOCKED and not report.get("kind"):
            report = {**report, "kind": DIALOG}  # "dialog open"
        if report is not None and (report["state"], report.get("kind")) == (BLOCKED, PERMISSION):
            report = self._on_dialog(report)
        self._has_worked = self._has_worked or (report is not None and report["state"] == WORKING)
        before = self.watching.evidence.get(OSC)
        super().on_osc7501(report)
        if self._question and report is not None and (report["state"], report.get("kind")) == (BLOCKED, QUESTION):
            self._tell_question()
        if report is None or report["state"] != BLOCKED:
            self._let_go()
            self._question = ""
            if before is not None and before.state == BLOCKED:
                self._over = _session_file(self.watching.agent_pid)[1]

    def _let_go(self) -> None:
        """The agent goes on: nothing is asked any more, and hooks that still wait may end."""
        self._dialog, self._shown = "", ""
        for request in self._requests.values():
            _end(request)

    async def answer(self, request: str, choice: str, message: str) -> dict[str, Any]:
        if not request:  # its own report comes a moment before its hook
            await self.until(lambda: not self._is_open() or bool(self._waits()), ASKED_S)
        verdict = self.watching.verdict
        number = request or (verdict.request if verdict is not None else "")
        waiting = self._requests.get(number)
        if waiting is None or waiting.decision.done() or verdict is None or verdict.state != BLOCKED:
            return {"ok": False, "why": "nothing is asked that can be answered here, or it was answered already"}
        if choice not in (ALLOW, DENY):
            return {"ok": False, "why": f"expected {ALLOW} or {DENY}, but got {choice}"}
        deny = {"behavior": "deny", "message": message or "The user said no."}
        waiting.decision.set_result({"behavior": "allow"} if choice == ALLOW else deny)
        self.watching.delivered()
        return {"ok": True, "request": number, "choice": choice}

    # its session file ---------------------------------------------------------------------------------------------

    def on_quiet(self) -> None:
        """The file is written a little later than the screen: it is read now, and once more, and while it matters."""
        super().on_quiet()
        if self.has_reported and (SCREEN in self.watching.evidence or not self._has_worked):
            self.look()  # whether it is signed in, it reports only when it has a prompt to work at
        self._read_file()
        self._read_again()

    def _read_again(self) -> None:
        if self._again is not None:
            self._again.cancel()
        self._again = asyncio.get_running_loop().call_later(FILE_AGAIN_S, self._look_at_file_again)

    def _look_at_file_again(self) -> None:
        self._again = None
        self._read_file()
        if FILE in self.watching.evidence:
            self._read_again()

    def _read_file(self) -> None:
        """A dialog is open, as far as its reports cannot say it. The file is another's: what is odd is left out."""
        told, written = _session_file(self.watching.agent_pid)
        waiting = told.get("waitingFor") if told.get("status") == "waiting" and written != self._over else None
        best = self.watching.evidence.get(OSC)
        if isinstance(waiting, str) and best is not None and best.state in AT_PROMPT:
            if FILE not in self.watching.evidence:
                self.watching.put(FILE, BLOCKED, kind=DIALOG, message=waiting, adds=True)
        else:
            self.watching.forget(FILE)

    async def refusal(self) -> str | None:
        self._read_file()
        return await super().refusal()


def _session_file(pid: int) -> tuple[dict[str, Any], int]:
    """What it says, and when it was written: later than the agent's own report of the same."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ.get("HOME", "/"), ".claude")
    try:
        fd = os.open(os.path.join(folder, "sessions", f"{pid}.json"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}, 0
    with os.fdopen(fd, "rb") as file:
        written = os.fstat(fd).st_mtime_ns
        try:
            told = json.loads(file.read(MOST_FILE_BYTES))
        except NOT_READ:
            return {}, written
    return told if isinstance(told, dict) else {}, written


def asked(tool: str, wanted: object) -> str:
    """``Bash: touch q``, as a person would read it."""
    if not isinstance(wanted, dict):
        return tool
    for name in ("command", "file_path", "url", "path", "pattern"):
        if isinstance(wanted.get(name), str):
            return f"{tool}: {wanted[name]}"
    return f"{tool}: {json.dumps(wanted, ensure_ascii=False)}" if wanted else tool


def _is_about(dialog: str, request: Asked) -> bool:
    """Whether a dialog, as it is reported ("approve Bash: touch q"), is that of the request."""
    return bool(request.about) and plain(dialog).endswith(f": {request.about}")


def _end(request: Asked) -> None:
    """Nothing is answered: the hook ends, and its dialog, if it is open, stays."""
    if not request.decision.done():
        request.decision.set_result(None)


def _objects(found: object) -> list[dict[str, Any]]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _question(wanted: object) -> str:
    questions = wanted.get("questions") if isinstance(wanted, dict) else None
    first = questions[0] if isinstance(questions, list) and questions else {}
    return str(first.get("question", "")) if isinstance(first, dict) else ""


def first_line(told: dict[str, Any]) -> str:
    return str(told.get("last_assistant_message") or "").strip().split("\n")[0]


def is_limit(told: dict[str, Any], text: str) -> str:
    """The kind of an error: LIMIT for a usage limit."""
    limit = any(word in text.lower() or word in str(told.get("error")) for word in LIMIT_WORDS)
    return LIMIT if limit else ""
