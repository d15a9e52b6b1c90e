"""The dashboard's list: sessions by section, and each as one line. Order, signs and colours are the model's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rich.text import Text

from hitchpost.model.headline import ENDED, SECTIONS
from hitchpost.model.record import LISTED
from hitchpost.ops.views.session_types import Session
from hitchpost.text import visible, width

COLOURS = {"orange": "#e0a458", "violet": "#b48ead", "red": "#e06c75", "blue": "#7aa2f7", "green": "#98c379"}
COLOURS |= {"yellow": "#e5c07b", "grey": "#7f8796"}
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
NAME_WIDTH, GLYPH_WIDTH = 18, 3
FOLDED = 5
"""So many ended sessions are shown while their section is folded."""


def sections(sessions: Iterable[Session], wanted: str = "") -> dict[str, list[Session]]:
    """The listed sessions that have every word of ``wanted``, by section. Within one: pinned, urgent, newest first."""
    found: dict[str, list[Session]] = {name: [] for name in SECTIONS}
    words = wanted.lower().split()
    for session in sessions:
        if session["record"] in LISTED and all(word in _text(session) for word in words):
            found[session["section"]].append(session)
    for part in found.values():
        part.sort(key=lambda session: session["since"] or "", reverse=True)
        part.sort(key=lambda session: (not session["pinned"], session["rank"]))
    return found


def _text(session: Session) -> str:
    place = session["workspace"]
    words = (session["name"], session["agent"], session["headline"], session["detail"], session["description"])
    return " ".join((*words, place["branch"] or "", place["path"])).lower()


def age(since: str | None, now: datetime) -> str:
    """As people say it: seconds only within the first minute."""
    if since is None:
        return ""
    seconds = max(0, int((now - datetime.fromisoformat(since)).total_seconds()))
    if seconds < MINUTE_S:
        return f"{seconds}s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S}m"
    return f"{seconds // HOUR_S}h" if seconds < DAY_S else f"{seconds // DAY_S}d"


def is_snoozed(session: Session) -> bool:
    """The time stays in the session when it has passed."""
    until = session["snoozed_until"]
    return until is not None and datetime.fromisoformat(until) > datetime.now(UTC)


def title(section: str, count: int, hidden: int) -> Text:
    more = f"  {hidden} more, f shows them" if hidden else ""
    return Text.assemble((f"{SECTIONS[section]} {count}", "bold"), (more, "dim"))


def row(session: Session, now: datetime | None = None) -> Text:
    """One line: sign, name, headline, since when, detail. It is cut where the list ends."""
    colour = COLOURS.get(session["colour"], "")
    star = " ★" if session["pinned"] else ""
    name = _cut(visible(session["name"]), NAME_WIDTH - width(star)) + star
    since = age(session["since"], now or datetime.now(UTC))
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(session["glyph"] + " " * (GLYPH_WIDTH - width(session["glyph"])), colour)
    line.append(name + " " * (NAME_WIDTH - width(name) + 1), "bold")
    line.append(session["headline"], colour if session["section"] != ENDED else "dim")
    line.append(f" · {since}" if since else "", "dim")
    if session["detail"]:
        line.append(f"  {visible(session['detail'])}", "dim")
    return line


def size(session: Session) -> str:
    """How much it has changed; empty where nobody has counted, or nothing has."""
    found = session["changes"]
    return f"+{found['added']} −{found['deleted']}" if found is not None and found["files"] else ""


def _cut(text: str, most: int) -> str:
    if width(text) <= most:
        return text
    while width(text) > most - 1:
        text = text[:-1]
    return text + "…"


def head(session: Session) -> Text:
    """Above the screen of the session that is chosen: what it is, and where."""
    place = session["workspace"]
    where = f"{place['path']} ⎇ {place['branch']}" if place["branch"] else place["path"]
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{session['glyph']} {session['headline']}", COLOURS.get(session["colour"], ""))
    line.append(f"  {visible(session['name'])}", "bold")
    line.append(f"  {visible(session['agent'])} · {visible(where)}", "dim")
    if changed := size(session):
        line.append(f"  {changed}", COLOURS["green"])
    return line


def counts(found: dict[str, list[Session]]) -> str:
    """As in the page's status line: ``2 need you, 5 working``."""
    needs, working = len(found["needs-you"]), len(found["working"])
    return f"{needs} need{'s' if needs == 1 else ''} you, {working} working"
