"""From the four dialects of requests to one ``Conversation``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.agents.directives import Conversation, Schema

Body = Mapping[str, Any]

BLOCKS = re.compile(
    r"\n{0,2}<(system-reminder|system_reminder|system_notification|environment_context|user_instructions"
    r"|session_context|current_datetime|info-msg|local-command-\w+|command-\w+|permissions[\w ]*|recommended_plugins"
    r"|skills_instructions|turn_aborted|task-notification|user_shell_command|reminder|todo_status)\b[^>]*>.*?</\1>\n{0,2}",
    re.DOTALL,
)
"""What agents put around the user's words."""

OWN_WORDS = (
    "# AGENTS.md",
    "[Request interrupted by user",
    "This is the Gemini CLI",
    "This is the Qwen Code",
    "I switched to a new code base",
    "I have *added",
    "I am not sharing any files",
    "Change the greeting to be more casual",
    "Here are summaries of some files",
    "Continue from where you left off.",
)
"""How texts begin that an agent sends in the user's name."""

SIDE = re.compile(
    r"^(Generate a |Please write a |Write a (short|concise) |Summarize |Provide a concise |quota$|count$|Warmup$"
    r"|USER: |# USER|---BEGIN USER MESSAGES|Managed memory has |\[SUGGESTION MODE)",
    re.IGNORECASE,
)
"""How the requests begin that an agent makes for purposes of its own."""


AIDER_IS = ("expert software developer", "expert code analyst")
AIDER_ADDS = "\n\nTo suggest changes to a file you MUST return"
"""How that begins which aider puts behind each prompt."""


def words(text: str) -> str:
    """The user's words, exactly; nothing when the agent alone wrote the text."""
    rest = BLOCKS.sub("", text).partition(AIDER_ADDS)[0]
    return "" if not rest.strip() or rest.startswith(OWN_WORDS) else rest


def conversation(
    items: Iterable[tuple[str, str]], tools: Mapping[str, Schema], side: bool, problem: str
) -> Conversation:
    """``items`` in order: ("user", text), ("result", "")."""
    prompts: list[str] = []
    results = 0
    for kind, text in items:
        if kind == "result":
            results += 1
        elif kind == "user" and (said := words(text)):
            prompts.append(said)
            results = 0
    side = side or bool(prompts and SIDE.match(prompts[-1]))
    return Conversation(tuple(prompts), results, tools, side, problem)


def parts(content: Any) -> list[Body]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content or [] if isinstance(part, dict)]


def anthropic(body: Body) -> Conversation:
    items: list[tuple[str, str]] = []
    for message in body.get("messages", []):
        own = parts(message["content"])
        for part in own:
            if part["type"] == "tool_result":
                items.append(("result", ""))
            elif part["type"] == "text":
                # Claude Code puts prompts that got no answer into one message, and a line's end between them.
                items.append((message["role"], part["text"] if part is own[-1] else part["text"].removesuffix("\n")))
    tools = {tool["name"]: tool.get("input_schema", {}) for tool in body.get("tools") or []}
    return conversation(items, tools, not tools, _anthropic_problem(body))


def _anthropic_problem(body: Body) -> str:
    open_calls: set[str] = set()
    for number, message in enumerate(body.get("messages", [])):
        results = {part["tool_use_id"] for part in parts(message["content"]) if part["type"] == "tool_result"}
        if left := open_calls - results:
            return (
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(sorted(left))}."
            )
        if extra := results - open_calls:
            return f"messages.{number}: unexpected `tool_use_id` in `tool_result` blocks: {', '.join(sorted(extra))}."
        open_calls = {part["id"] for part in parts(message["content"]) if part["type"] == "tool_use"}
    return f"`tool_use` ids were found without `tool_result` blocks: {', '.join(open_calls)}." if open_calls else ""


def responses(body: Body) -> Conversation:
    given = body.get("input", [])
    entries = [{"role": "user", "content": given}] if isinstance(given, str) else given
    items: list[tuple[str, str]] = []
    calls, results = set(), set()
    for entry in entries:
        kind = str(entry.get("type", "message"))
        if kind.endswith("call_output"):
            items.append(("result", ""))
            results.add(entry["call_id"])
        elif kind.endswith("_call") and "call_id" in entry:
            calls.add(entry["call_id"])
        elif entry.get("role") in ("user", "assistant"):
            items += [(entry["role"], part.get("text", "")) for part in parts(entry["content"])]
    problem = ""
    if left := calls - results:
        problem = f"No tool output found for function call {', '.join(sorted(left))}."
    elif extra := results - calls:
        problem = f"No tool call found for function call output with call_id {', '.join(sorted(extra))}."
    tools = dict(_functions(body.get("tools") or []))
    return conversation(items, tools, not tools, problem)


def _functions(tools: Iterable[Body]) -> Iterator[tuple[str, Schema]]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _functions(tool.get("tools") or [])
        elif tool.get("type") == "function":
            yield tool["name"], tool.get("parameters") or {}


def chat(body: Body) -> Conversation:
    items: list[tuple[str, str]] = []
    open_calls: set[str] = set()
    problem = ""
    for message in body.get("messages", []):
        if message["role"] == "tool":
            items.append(("result", ""))
            if message["tool_call_id"] not in open_calls:
                problem = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            break
        items += [(message["role"], part.get("text", "")) for part in parts(message.get("content"))]
        open_calls = {call["id"] for call in message.get("tool_calls") or []}
    if open_calls:
        problem = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )
    tools = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in body.get("tools") or []}
    # Only aider works without tools. Its system prompt tells how to write files, or that it is to answer.
    system = " ".join(
        part.get("text", "")
        for message in body.get("messages", [])
        if message["role"] in ("system", "developer")
        for part in parts(message.get("content"))
    )
    side = not tools and not any(role in system for role in AIDER_IS)
    return conversation(items, tools, side, problem)


def gemini(body: Body) -> Conversation:
    items: list[tuple[str, str]] = []
    open_calls, problem = 0, ""
    for content in body.get("contents", []):
        own = content.get("parts", [])
        answers = sum("functionResponse" in part for part in own)
        if answers != open_calls:
            problem = (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        open_calls = sum("functionCall" in part for part in own)
        for part in own:
            if "functionResponse" in part:
                items.append(("result", ""))
            elif part.get("text"):
                items.append((content.get("role", "user"), part["text"]))
    tools = {
        function["name"]: function.get("parametersJsonSchema") or function.get("parameters") or {}
        for tool in body.get("tools") or []
        for function in tool.get("functionDeclarations") or []
    }
    return conversation(items, tools, not tools, problem)
