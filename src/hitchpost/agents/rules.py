"""Rules that read an agent's screen or title, and how its prompt takes text: data in the agent's own file.

A new version of an agent that looks different is a change of that file. ``hitch rules test`` shows what it changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from hitchpost.agents import catalog
from hitchpost.errors import UsageError
from hitchpost.model import attention

STATES = attention.STATES


@dataclass(frozen=True, slots=True)
class Rule:
    """Applies when every pattern of ``find`` is there and none of ``without``, in the last ``rows`` lines (0: all).

    ``message`` is a text, or a pattern whose group ``text`` is it; with ``message_lines``, of every line that has it:
    what is allowed may stand in any of them. ``adds``: see ``model.attention.Evidence``.
    ``takes_text``: what it asks is answered with a line of text and Enter.
    The group ``text`` of ``background_from`` is how many tasks go on after the turn.
    For agents that read lines: ``reading`` says whether it must be reading one, and ``printed`` what it must have
    printed since it took the last one. Its group ``text`` is added to the message.
    """

    state: str
    find: tuple[re.Pattern[str], ...]
    without: tuple[re.Pattern[str], ...] = ()
    rows: int = 0
    kind: str = ""
    message: str = ""
    message_from: re.Pattern[str] | None = None
    message_lines: bool = False
    until_from: re.Pattern[str] | None = None
    background_from: re.Pattern[str] | None = None
    options: tuple[tuple[str, str], ...] = ()
    takes_text: bool = False
    adds: bool = False
    reading: bool | None = None
    printed: re.Pattern[str] | None = None

    @property
    def can_be_answered(self) -> bool:
        return bool(self.options) or self.takes_text


@dataclass(frozen=True, slots=True)
class Match:
    """``keys`` are what is typed for each option."""

    rule: Rule
    state: str
    message: str
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Guard:
    """For texts that begin, or end, with ``text``, and have ``only``: ``adds`` is put there; None refuses them.

    With ``press``, ``adds`` and ``text`` are typed first, then these keys are pressed, which take ``adds`` away again,
    and then the rest is typed.
    """

    text: str
    adds: str | None
    only: re.Pattern[str] | None = None
    press: str = ""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A text as it must be typed: first ``before``, then the keys ``press``, then ``text``."""

    text: str
    before: str = ""
    press: str = ""


@dataclass(frozen=True, slots=True)
class PromptRules:
    """How a text reaches the agent as it is, or nearly so."""

    guards: tuple[Guard, ...] = ()
    end_guards: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """``enter_after_s``: Enter is pressed so long after the text was seen in the agent's prompt, and not at once."""

    version: int = 0
    screen: tuple[Rule, ...] = ()
    title: tuple[Rule, ...] = ()
    only_at_start: bool = False
    queues: bool = True
    proofs: tuple[str, ...] = ()
    composer: re.Pattern[str] | None = None
    enter_after_s: float = 0.0
    prompt: PromptRules = field(default_factory=PromptRules)


def load(name: str) -> Rules:
    """The rules of an agent of the catalog; none where its file has none. Raises ``UsageError``."""
    return parse(catalog.table(name), name)


def parse(table: dict[str, Any], name: str) -> Rules:
    prompt = table.get("prompt", {})
    try:
        return Rules(
            version=int(table.get("rules", {}).get("version", 0)),
            screen=tuple(_rule(item) for item in table.get("screen", ())),
            title=tuple(_rule(item) for item in table.get("title_rules", ())),
            only_at_start=bool(table.get("rules", {}).get("only_at_start", False)),
            queues=bool(prompt.get("queues", True)),
            proofs=tuple(prompt.get("proofs", ())),
            composer=re.compile(prompt["composer"], re.MULTILINE) if "composer" in prompt else None,
            enter_after_s=float(prompt.get("enter_after_s", 0)),
            prompt=PromptRules(_guards(prompt.get("begins", {})), _guards(prompt.get("ends", {}))),
        )
    except (re.error, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"the rules of agent {name} cannot be read: {error}") from None


def _rule(item: dict[str, Any]) -> Rule:
    if item["state"] not in STATES:
        raise ValueError(f"expected a state, one of {', '.join(STATES)}, but got {item['state']!r}")
    return Rule(
        state=item["state"],
        find=_patterns(item.get("find", ()) if "reading" in item else item["find"]),
        without=_patterns(item.get("without", ())),
        rows=int(item.get("rows", 0)),
        kind=item.get("kind", ""),
        message=item.get("message", ""),
        message_from=_pattern(item.get("message_from")),
        message_lines=bool(item.get("message_lines", False)),
        until_from=_pattern(item.get("until_from")),
        background_from=_pattern(item.get("background_from")),
        options=tuple(item.get("options", {}).items()),
        takes_text=bool(item.get("takes_text", False)),
        adds=bool(item.get("adds", False)),
        reading=item.get("reading"),
        printed=_pattern(item.get("printed")),
    )


def _patterns(found: str | list[str] | tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.MULTILINE) for text in ([found] if isinstance(found, str) else found))


def _pattern(text: str | None) -> re.Pattern[str] | None:
    return None if text is None else re.compile(text, re.MULTILINE)


def _guards(found: dict[str, Any]) -> tuple[Guard, ...]:
    """A text is what is added, ``false`` refuses, and a table has all that a guard can have."""
    return tuple(_guard(text, guard) for text, guard in found.items())


def _guard(text: str, found: Any) -> Guard:
    if isinstance(found, dict):
        adds = None if found.get("refuse") is True else str(found["adds"])
        return Guard(text, adds, _pattern(found.get("only")), str(found.get("press", "")))
    return Guard(text, None if found is False else str(found))


def first_match(rules: tuple[Rule, ...], text: str, *, reading: bool | None = None, printed: str = "") -> Match | None:
    """``reading`` and ``printed`` are known of agents that read lines only."""
    lines = text.rstrip().split("\n")
    for rule in rules:
        shown = "\n".join(lines[-rule.rows :]) if rule.rows else text
        if (
            rule.reading in (None, reading)
            and all(pattern.search(shown) for pattern in rule.find)
            and not any(pattern.search(shown) for pattern in rule.without)
            and (rule.printed is None or rule.printed.search(printed))
        ):
            found = (_group(rule.message_from, shown, every=rule.message_lines), _group(rule.printed, printed))
            message = " ".join(filter(None, found)) or rule.message
            details: dict[str, Any] = {"message": message, "kind": rule.kind, "adds": rule.adds}
            details |= {"until": _group(rule.until_from, shown), "options": tuple(name for name, _ in rule.options)}
            details["takes_text"] = rule.takes_text
            details["background"] = int(_group(rule.background_from, shown) or 0)
            return Match(rule, rule.state, message, details)
    return None


def _group(pattern: re.Pattern[str] | None, text: str, *, every: bool = False) -> str:
    matches = pattern.finditer(text) if pattern is not None else iter(())
    found = [found.groupdict().get("text") or "" for found in (matches if every else islice(matches, 1))]
    return " ".join(" ".join(found).split())


def composed(composer: re.Pattern[str], screen: str) -> str | None:
    """What stands in the agent's prompt and was not sent; None when no prompt is shown."""
    found = [match.group("text").strip() for match in composer.finditer(screen)]
    return found[-1] if found else None  # what is above the last one was said before


def guarded(rules: PromptRules, text: str) -> Guarded | None:
    """``text`` as it must be typed to be taken as a prompt; None when it cannot."""
    typed = Guarded(text)
    for guard in rules.guards:
        shown = text.lstrip() if guard.adds is None else text  # a space does not help where it is refused
        if shown.startswith(guard.text) and (guard.only is None or guard.only.search(shown)):
            if guard.adds is None:
                return None
            typed = Guarded(guard.adds + text)
            if guard.press:
                typed = Guarded(text.removeprefix(guard.text), guard.adds + guard.text, guard.press)
            break
    for guard in rules.end_guards:
        if text.endswith(guard.text):
            return None if guard.adds is None else replace(typed, text=typed.text + guard.adds)
    return typed
