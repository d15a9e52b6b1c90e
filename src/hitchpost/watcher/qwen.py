"""Qwen Code: its window title says what it does, its hooks with which text, its screen how to answer."""

from __future__ import annotations

from typing import Any

from hitchpost.model.attention import BLOCKED, DONE, ERROR, IDLE, PERMISSION, QUESTION, WORKING
from hitchpost.watcher.adapter import HOOKS, SCREEN, TITLE, Adapter
from hitchpost.watcher.claude import asked, first_line, is_limit

QUESTIONS = "ask_user_question"
"""A tool that needs no permission, and asks the person."""


class Qwen(Adapter):
    sources = (TITLE, HOOKS, SCREEN)

    async def on_hook(self, name: str, told: dict[str, Any]) -> dict[str, Any] | None:
        """No answer: while a hook waits, no dialog is shown, and the person at the terminal could not answer."""
        session = str(told.get("session_id") or "")
        if name == "SessionStart" and session:
            self.watching.conversation(session, begun=told.get("source") == "resume")
        elif name == "UserPromptSubmit":
            if told.get("prompt"):  # it is told after each tool, too, with none
                self.watching.conversation(session, begun=True)
                self.prompted(str(told["prompt"]), name)
            self.watching.put(HOOKS, WORKING)
        elif name == "PermissionRequest":
            tool, given = str(told.get("tool_name")), told.get("tool_input")
            question = _question(given) if tool == QUESTIONS else ""
            self.watching.put(
                HOOKS, BLOCKED, kind=QUESTION if question else PERMISSION, message=question or asked(tool, given)
            )
        elif name == "Stop":
            tasks = [task for task in told.get("background_tasks") or () if task.get("status") in (None, "running")]
            names = ", ".join(str(task.get("description") or task.get("command") or "") for task in tasks)
            self.watching.put(HOOKS, DONE, background=len(tasks), message=names or first_line(told))
            if (title := self.watching.evidence.get(TITLE)) is not None and title.state == IDLE:
                self.watching.put(TITLE, DONE)
        elif name == "StopFailure":
            text = str(told.get("last_assistant_message") or told.get("error_details") or told.get("error") or "")
            self.watching.put(HOOKS, ERROR, message=text, kind=is_limit(told, text), adds=True)
        return None

    def end_of_turn(self) -> str | None:
        """A turn that was interrupted, or whose tool was refused, has no hook of its end."""
        said = self.watching.evidence.get(HOOKS)
        if said is not None and said.state == WORKING:
            return None
        return DONE if said is not None and said.state == DONE else IDLE


def _question(given: object) -> str:
    questions = given.get("questions") if isinstance(given, dict) else None
    texts = (item.get("question") for item in questions or () if isinstance(item, dict))
    return " / ".join(str(text) for text in texts if text)
