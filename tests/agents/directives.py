"""What a prompt tells the scripted model to do: ``[[say hi]] [[bash make]] [[hold later]]``.

| directive | what the model does |
|---|---|
| ``[[say TEXT]]`` | says it |
| ``[[trickle N]]`` | says a word every tenth of a second, for N seconds |
| ``[[hold NAME]]`` | is silent, with the answer open, until the test releases NAME |
| ``[[error 529 TEXT]]``, ``[[usage-limit TEXT]]`` | answers with that error instead of anything else |
| ``[[bash CMD]]`` | calls the agent's shell |
| ``[[ask CMD]]`` | the same, asking for approval where a model must ask (Codex) |
| ``[[background CMD]]`` | the same, without waiting for the end |
| ``[[write PATH|TEXT]]`` | calls the agent's tool that writes files |
| ``[[question TEXT|A|B]]`` | calls the agent's tool that asks the user |
| ``[[call TOOL|JSON]]`` | calls this tool |
| ``[[also TOOL|JSON]]`` | the same, in one answer with the call before it |

A model stops after a call and is asked again with its result. So each call ends a round: the request that brings n
results plays the round of the newest prompt that comes after n calls.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = Mapping[str, Any]
"""The JSON schema of a tool's arguments."""

SPOKEN = ("say", "trickle", "hold", "error", "usage-limit")
CALLED = ("bash", "ask", "background", "write", "question", "call", "also")
_START = re.compile(rf"\[\[({'|'.join((*SPOKEN, *CALLED))})(?: |(?=\]\]))")

SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "developer__shell")
WRITERS = ("Write", "write_file", "write", "create", "developer__write")
QUESTIONS = ("AskUserQuestion", "ask_user_question", "ask_user", "question", "request_user_input")


class BadDirective(ValueError):
    """Raised when a prompt holds a directive that cannot be carried out."""


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Round:
    """What the model does in one answer."""

    steps: tuple[Step, ...] = ()
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request tells: the user's prompts, how many results came after the newest, and what may be called."""

    prompts: tuple[str, ...] = ()
    results: int = 0
    tools: Mapping[str, Schema] = field(default_factory=dict)
    side: bool = False
    """The agent asks for a purpose of its own: a title, a summary, which model to take."""
    problem: str = ""
    """Why the real API would refuse this history."""


def directives(prompt: str) -> list[Step]:
    """In order. A directive ends at the first ``]]``; that of a call only after its JSON."""
    found = []
    at = 0
    while start := _START.search(prompt, at):
        kind, at = start[1], start.end()
        if kind in ("call", "also") and (bar := prompt.find("|", at)) != -1 and prompt[bar + 1 :].lstrip()[:1] == "{":
            opened = prompt.index("{", bar)
            try:
                _, end = json.JSONDecoder().raw_decode(prompt, opened)
            except ValueError as error:
                raise BadDirective(f"expected JSON after [[call {prompt[at:bar]}|, got {error}") from error
        else:
            end = at
        close = prompt.find("]]", end)
        if close == -1:
            raise BadDirective(f"[[{kind} is not closed by ]]")
        found.append(Step(kind, prompt[at:close]))
        at = close + 2
    return found


def play(conversation: Conversation) -> Round:
    """The round that is due. Raises ``BadDirective``."""
    if conversation.side or not conversation.prompts:
        return Round((Step("say", "A title"),))
    passed = 0
    steps: list[Step] = []
    calls: list[Call] = []
    for step in directives(conversation.prompts[-1]):
        if calls and step.kind != "also":
            break
        if calls:
            calls.append(call(step, conversation.tools))
        elif step.kind not in CALLED:
            steps.append(step)
        elif step.kind == "write" and not conversation.tools:  # aider takes whole files out of the text
            path, _, text = step.text.partition("|")
            steps.append(Step("say", f"\n{path}\n```\n{text}\n```\n"))
        elif passed == conversation.results:
            calls.append(call(step, conversation.tools))
        else:
            passed, steps = passed + 1, []
    if not calls and not any(step.kind in ("say", "trickle", "error", "usage-limit") for step in steps):
        steps.append(Step("say", "Done."))
    return Round(tuple(steps), tuple(calls))


def call(step: Step, tools: Mapping[str, Schema]) -> Call:
    """The call of the tool that this agent has for the step. Raises ``BadDirective`` when it has none."""
    if step.kind in ("call", "also"):
        tool, _, arguments = step.text.partition("|")
        return Call(tool.strip(), json.loads(arguments or "{}"))
    if step.kind == "write":
        path, _, text = step.text.partition("|")
        if not any(name in tools for name in WRITERS):  # Codex writes with its shell
            return call(Step("bash", f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"), tools)
        return _fill(WRITERS, tools, path=path, content=text)
    if step.kind == "question":
        question, *answers = step.text.split("|")
        return _question(question, answers, tools)
    return _fill(SHELLS, tools, command=step.text, kind=step.kind)


def _tool(names: tuple[str, ...], tools: Mapping[str, Schema]) -> str:
    name = next((name for name in names if name in tools), None)
    if name is None:
        raise BadDirective(f"expected one of the tools {', '.join(names)}, the agent offers {', '.join(sorted(tools))}")
    return name


def _fill(names: tuple[str, ...], tools: Mapping[str, Schema], kind: str = "", **given: str) -> Call:
    """The arguments that the tool's schema has a place for; what else it requires gets a harmless value."""
    name = _tool(names, tools)
    schema = tools[name]
    properties: Mapping[str, Any] = schema.get("properties") or {}
    known: dict[str, Any] = {"description": "as the test wants", "summary": "as the test wants"}
    if "path" in given:
        known |= dict.fromkeys(("file_path", "filePath", "path", "absolute_path"), given["path"])
        known |= dict.fromkeys(("content", "file_text", "contents"), given["content"])
    else:
        known |= dict.fromkeys(("command", "cmd"), given["command"])
        known |= {"is_background": kind == "background"}
    if kind == "ask":
        known |= {"sandbox_permissions": "require_escalated", "justification": "The test wants it."}
    if kind == "background":
        known |= {"run_in_background": True, "yield_time_ms": 250, "mode": "async"}
    filled = {name: known[name] for name in properties if name in known}
    for required in schema.get("required") or ():
        filled.setdefault(required, _harmless(properties.get(required) or {}))
    return Call(name, filled)


def _harmless(schema: Schema) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    return {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}.get(str(kind), "none")


def _question(question: str, answers: list[str], tools: Mapping[str, Schema]) -> Call:
    # Claude offers some of its tools only by name, so the absence of a schema says nothing.
    name = next((name for name in QUESTIONS if name in tools), QUESTIONS[0])
    if "requestedSchema" in (tools.get(name, {}).get("properties") or {}):  # Copilot shows a form
        form = {"properties": {"answer": {"type": "string", "enum": answers}}, "required": ["answer"]}
        return Call(name, {"message": question, "requestedSchema": form})
    options = [{"label": answer, "description": answer} for answer in answers]
    one = {"id": "question", "question": question, "header": "Question", "options": options, "multiSelect": False}
    items = ((tools.get(name, {}).get("properties") or {}).get("questions") or {}).get("items") or {}
    if "type" in (items.get("properties") or {}):  # of Gemini's
        one |= {"type": "choice"}
    return Call(name, {"questions": [one]})
