"""What Codex's app-server says, in our words. All of it is the agent's: what is odd is left out."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from hitchpost.errors import MALFORMED
from hitchpost.model.attention import PERMISSION, QUESTION, plain

ALLOW, ALWAYS, DENY = "yes", "always", "no"
DECISIONS = {ALLOW: "accept", ALWAYS: "acceptForSession", DENY: "decline"}
COMMAND, CHANGE = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"
INPUT = "item/tool/requestUserInput"
KINDS = {
    COMMAND: PERMISSION,
    CHANGE: PERMISSION,
    "item/permissions/requestApproval": PERMISSION,
    INPUT: QUESTION,
    "mcpServer/elicitation/request": QUESTION,
}
"""What a person is asked. Other requests are for programs."""
LIMITS = ("usageLimitExceeded", "rateLimitExceeded", "sessionBudgetExceeded")
UNTIL = re.compile(r"try again (?:at|in) (?P<text>[^.]+(?:\.\d+)?)")


@dataclass(slots=True)
class Thread:
    """The conversation that the screen shows. ``busy``: a turn has begun, and its outcome is not known.

    ``heard``: something was said of it since it is shown. ``waits_for``: a person, and what kind of answer.
    ``turn``: the one that runs, as far as known; ``over``: the last one whose outcome was told. ``news`` counts what
    was heard: an answer to what was asked before the last of that may be older. ``listed_by``: when the end of its last
    turn is listed at the latest, a monotonic time.
    """

    id: str
    begun: bool = False
    subscribed: bool = False
    busy: bool = False
    heard: bool = False
    waits_for: str = ""
    settling: bool = False
    listed_by: float = 0.0
    turn: str = ""
    over: str = ""
    news: int = 0
    model: str = ""
    said: str = ""
    """Its last answer, as far as it was heard."""

    def can_be(self, number: str) -> bool:
        """Whether the turn that runs can be this one."""
        return number == self.turn if self.turn else number != self.over


@dataclass(slots=True)
class Asked:
    """A request of the server. ``answers`` has what can be chosen, and the result of each."""

    number: Any
    kind: str
    text: str
    answers: dict[str, Any] = field(default_factory=dict)
    question: str = ""
    answered: bool = False

    @property
    def takes_text(self) -> bool:
        return self.question != ""

    def result(self, choice: str) -> dict[str, Any]:
        if choice in self.answers:
            return self.answers[choice]  # type: ignore[no-any-return]
        return _chosen(self.question, choice)


@dataclass(frozen=True, slots=True)
class Failure:
    text: str = ""
    is_limit: bool = False
    until: str = ""


def is_shown(thread: dict[str, Any]) -> bool:
    """Whether the screen can show a thread. Titles are made in threads that do not last; helpers have parents."""
    return not thread.get("ephemeral") and not thread.get("parentThreadId") and isinstance(thread.get("id"), str)


def is_active(thread: Any) -> bool:
    """Whether a turn is known to run in a thread."""
    status = thread.get("status") if isinstance(thread, dict) else None
    return isinstance(status, dict) and status.get("type") == "active"


def is_over(thread: Any) -> bool:
    """Whether no turn is running in a thread."""
    status = thread.get("status") if isinstance(thread, dict) else None
    return isinstance(status, dict) and status.get("type") != "active"


def asked(method: str, told: dict[str, Any], changes: list[str], number: Any) -> Asked | None:
    if method not in KINDS:
        return None
    if method == INPUT:
        return _question(told, number)
    text = told.get("message") or ""
    if method == COMMAND:
        text = f"run {_command(told)}"
    elif method == CHANGE:
        text = f"change {', '.join(changes) or 'files'}"
    reason = told.get("reason")
    text = f"{text} ({reason})" if text and reason else str(text or reason or "")
    return Asked(number, KINDS[method], text, _decisions(method, told))


def _command(told: dict[str, Any]) -> str:
    """As the model has written it, without the shell that runs it. Codex's own summary of it may leave parts out."""
    command = str(told.get("command") or "a command")
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


def _decisions(method: str, told: dict[str, Any]) -> dict[str, Any]:
    """A refusal always counts, and the turn goes on after it."""
    if method not in (COMMAND, CHANGE):
        return {}
    offered = told.get("availableDecisions")
    words = {ALLOW, DENY} | ({ALWAYS} if method == CHANGE else set())
    if isinstance(offered, list):
        words = {DENY} | {word for word, decision in DECISIONS.items() if decision in offered}
    return {word: {"decision": decision} for word, decision in DECISIONS.items() if word in words}


def _question(told: dict[str, Any], number: Any) -> Asked:
    """One question can be answered here; several, or a secret, in the terminal only."""
    questions = [question for question in told.get("questions") or () if isinstance(question, dict)]
    text = " / ".join(str(question.get("question") or "") for question in questions)
    if len(questions) != 1 or questions[0].get("isSecret"):
        return Asked(number, QUESTION, text)
    name = str(questions[0].get("id") or "")
    labels = [str(option.get("label")) for option in questions[0].get("options") or () if isinstance(option, dict)]
    return Asked(number, QUESTION, text, {plain(label): _chosen(name, label) for label in labels}, question=name)


def _chosen(question: str, answer: str) -> dict[str, Any]:
    return {"answers": {question: {"answers": [answer]}}}


def input_of(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "text_elements": []}]


def failure(error: Any) -> Failure:
    """Why a turn has failed. The text is often the JSON that the API has answered."""
    if not isinstance(error, dict):
        return Failure("the turn has failed")
    text = str(error.get("message") or "")
    try:
        told = json.loads(text)
        text = str(told["error"]["message"])
    except MALFORMED:
        pass  # a sentence
    until = UNTIL.search(text)
    return Failure(text, error.get("codexErrorInfo") in LIMITS, until["text"] if until else "")


def number_of(turn: Any) -> str:
    """Which turn it is; empty when it does not say."""
    return str(turn.get("id") or "") if isinstance(turn, dict) else ""


def is_newer(turn: Any, moment: float, *, has_run: bool) -> bool:
    """Whether a turn has ended after ``moment``: the outcome of an older one is no news.

    Its end has whole seconds. In the same second, it counts if we know that a turn ``has_run`` since.
    """
    ended = turn.get("completedAt") if isinstance(turn, dict) else None
    return isinstance(ended, (int, float)) and ended >= (int(moment) if has_run else moment)


def last_answer(turn: dict[str, Any]) -> str:
    """What the agent said last; empty when the turn is told without its items."""
    items = [item for item in turn.get("items") or () if isinstance(item, dict) and item.get("type") == "agentMessage"]
    return str(items[-1].get("text") or "") if items else ""


def first_line(text: str) -> str:
    return text.strip().split("\n")[0]
