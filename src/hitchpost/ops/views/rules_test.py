"""What rules say of a recording, moment by moment: the present ones, and new ones beside them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hitchpost.agents import rules
from hitchpost.agents.rules import Rules
from hitchpost.errors import MALFORMED, HitchpostError, UsageError
from hitchpost.model.attention import UNKNOWN
from hitchpost.ops.views.find import find, output_of
from hitchpost.store import files
from hitchpost.terminal import recording
from hitchpost.terminal.emulators import Emulators, NoEmulator
from hitchpost.terminal.readlines import ReadLines
from hitchpost.terminal.recording import OUTPUT, RESIZE, Beginning, Event
from hitchpost.terminal.screen import PlainScreen, Screen

SCREEN, TITLE = "screen", "title"
LOOK_S = 0.1
"""A screen is read when it has been shown for so long, or so long after the one before."""
MOST_FILE_BYTES = 256 << 20
TITLES = re.compile(r"\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)")
LONGEST_TITLE = 4096


@dataclass(frozen=True, slots=True)
class Recording:
    """``agent`` is empty where nothing says whose it is."""

    agent: str
    begin: Beginning
    events: Iterable[Event]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the first rule that applies says."""

    state: str
    kind: str
    message: str

    def __str__(self) -> str:
        kind = f" ({self.kind})" if self.kind else ""
        return f"{self.state}{kind}: {self.message}" if self.message else f"{self.state}{kind}"


Readings = tuple[Reading | None, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """From ``from_s`` to ``to_s`` after the beginning, a ``source`` read the same, by each set of rules."""

    source: str
    from_s: float
    to_s: float
    readings: Readings


def of_session(home: str, session: str, run: int | None = None) -> Recording:
    seen = find(home, session)
    number, folder = output_of(seen, run)
    begin = recording.beginning(folder)
    if begin is None:
        raise HitchpostError(f"run {number} of {seen.record.name} has no recording")
    return Recording(seen.record.agent, begin, recording.events(folder))


def of_file(path: str) -> Recording:
    """An asciicast, version 2 or 3, as ``hitch replay --export`` writes it. Raises ``UsageError``."""
    try:
        lines = files.read_bytes(path, MOST_FILE_BYTES, follow=True).decode().splitlines()
        header, *events = [json.loads(line) for line in lines if line.strip() and not line.startswith("#")]
        version, size = header["version"], header.get("term") or {"cols": header["width"], "rows": header["height"]}
        if version not in (2, 3):
            raise ValueError(f"expected version 2 or 3, but got {version!r}")
        begin = Beginning(float(header.get("timestamp", 0)), int(size["cols"]), int(size["rows"]))
        return Recording("", begin, tuple(_events(begin.at, events, adds_up=version == 3)))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or '').lower()}") from None
    except MALFORMED as error:
        raise UsageError(f"{path} is not a recording in the asciicast format: {error}") from None


def _events(began: float, told: list[list[object]], *, adds_up: bool) -> Iterator[Event]:
    """Times are since the event before, or since the beginning."""
    at = began
    for seconds, code, data in told:
        at = (at if adds_up else began) + float(str(seconds))
        yield Event(at, str(code), str(data))


def read_rules(path: str) -> Rules:
    """Of an agent's file. Raises ``UsageError``."""
    try:
        return rules.parse(tomllib.loads(files.read_bytes(path, follow=True).decode()), path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or '').lower()}") from None
    except ValueError as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def stretches(recorded: Recording, sets: tuple[Rules, ...]) -> list[Stretch]:
    """What each set of rules reads, over time, by source. Every screen counts, also where the agent's own reports would
    count more."""
    found: list[Stretch] = []
    now: dict[str, tuple[float, Readings]] = {}
    at_s, lines = 0.0, ReadLines()
    for at_s, source, text in _looks(recorded, lines):
        readings = tuple(_reading(each, source, text, lines) for each in sets)
        if source in now and now[source][1] != readings:
            found.append(Stretch(source, now[source][0], at_s, now[source][1]))
        if source not in now or now[source][1] != readings:
            now[source] = (at_s, readings)
    found += [Stretch(source, from_s, at_s, readings) for source, (from_s, readings) in now.items()]
    found = [each for each in found if any(reading is not None for reading in each.readings)]
    return sorted(found, key=lambda each: (each.from_s, each.source))


def _reading(which: Rules, source: str, text: str, lines: ReadLines) -> Reading | None:
    """A screen that no rule knows says nothing; a title that none knows is unknown."""
    known = which.screen if source == SCREEN else which.title
    match = rules.first_match(known, text, reading=lines.reading, printed=lines.printed())
    if match is None:
        return Reading(UNKNOWN, "", "") if source == TITLE and which.title else None
    return Reading(match.state, match.rule.kind, match.message)


def _looks(recorded: Recording, lines: ReadLines) -> Iterator[tuple[float, str, str]]:
    """When which source showed which text: every title, and the screen whenever it rests for a moment."""
    begin = recorded.begin
    looked = last = begin.at
    titles = _Titles()
    with Emulators() as emulators:
        screen = _open(emulators, begin)
        try:
            for event in recorded.events:
                if event.at - looked >= LOOK_S and event.code in (OUTPUT, RESIZE):
                    yield last - begin.at, SCREEN, screen.text(unwrap=True)
                    looked = event.at
                last = max(last, event.at)
                if event.code == RESIZE:
                    cols, _, rows = event.data.partition("x")
                    screen.resize(int(cols), int(rows))
                elif event.code == OUTPUT:
                    data = event.data.encode("utf-8", "replace")
                    screen.feed(data)
                    lines.feed(data)
                    for title in titles.feed(event.data):
                        yield last - begin.at, TITLE, title
            yield last - begin.at, SCREEN, screen.text(unwrap=True)
        finally:
            screen.close()


class _Titles:
    """The titles in a stream that is cut anywhere."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        text = self._rest + text
        found = list(TITLES.finditer(text))
        begun = text.find("\x1b", found[-1].end() if found else 0)
        while begun >= 0 and not "\x1b]".startswith(text[begun : begun + 2]):
            begun = text.find("\x1b", begun + 1)
        rest = text[begun:] if begun >= 0 else ""
        self._rest = rest if len(rest) <= LONGEST_TITLE else ""
        return [title[1] for title in found]


def _open(emulators: Emulators, begin: Beginning) -> Screen:
    try:
        return emulators.open(begin.cols, begin.rows)
    except NoEmulator:
        return PlainScreen(begin.cols, begin.rows)
