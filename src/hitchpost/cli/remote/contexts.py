"""Contexts: hubs elsewhere, by name, in the settings folder. Each has a file for its owner only: it holds a token."""

from __future__ import annotations

import os
import stat

from hitchpost import wire
from hitchpost.errors import HitchpostError, UsageError
from hitchpost.store import files
from hitchpost.store.home import CONTEXT_OPTION, CONTEXT_VARIABLE, contexts_folder
from hitchpost.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CURRENT, ENDING, AUTHORITIES = "current", ".json", ".pem"
OPTION, VARIABLE = CONTEXT_OPTION, CONTEXT_VARIABLE
HERE = "local"
"""The name of this machine, where a context is expected."""
LONGEST_NAME = 64


class NoSuchContext(HitchpostError):
    """Raised when no context has the name."""

    exit_code = 3

    def __init__(self, name: str) -> None:
        named = f", which {VARIABLE} names" if os.environ.get(VARIABLE) == name else ""
        super().__init__(f"no context {name!r}{named}", "hitch context ls lists them")


class ContextExists(HitchpostError):
    """Raised when a context of that name is there already."""

    exit_code = 5

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a context {name} already", f"hitch context rm {name} forgets it")


class OpenToOthers(HitchpostError):
    """Raised when others could read or change a context's file, and with it the token."""

    exit_code = 4

    def __init__(self, name: str, path: str, why: str) -> None:
        hint = f"hitch context rm {name} forgets it; add it again with a new token, because others may know this one"
        super().__init__(f"will not use {path}: {why}", hint)


@value
class Context:
    """``authorities`` is a file with who may sign the hub's certificate; empty: those whom this machine trusts.

    ``is_new``: it is being added, and goes again when its hub does not answer.
    """

    name: str
    url: str
    token: str
    authorities: str = ""
    is_new: bool = False


@value
class Choice:
    """Which hub a command is for; no name means this machine. ``given``: by an option or a variable, for this call."""

    name: str = ""
    given: bool = False


def chosen(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[Choice, list[str]]:
    """Which hub a command line is for, and the line without the option. Raises ``UsageError``.

    The option counts most, then the variable, then what ``hitch context use`` has stored. The latter does not count
    inside a session: what runs there means the machine that it is on.
    """
    name, rest = _taken(words)
    if name is None:
        name = environment.get(VARIABLE) or None
    if name is not None:
        return Choice("" if name == HERE else name, given=True), rest
    return Choice("" if wire.SESSION_MARK in environment else current()), rest


def _taken(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The option's value and the other words. What stands behind ``--`` is not ours."""
    name: str | None = None
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            return name, [*rest, word, *left]
        option, equals, value = word.partition("=")
        if option != OPTION:
            rest.append(word)
            continue
        given = value if equals else next(left, "")
        if not given:
            raise UsageError(f"expected the name of a context after {OPTION}", "hitch context ls lists them")
        name = given
    return name, rest


def current() -> str:
    """The context that ``hitch context use`` has chosen; empty for this machine."""
    try:
        return files.read_bytes(os.path.join(contexts_folder(), CURRENT), 1000).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""


def use(name: str) -> None:
    """Raises ``NoSuchContext``."""
    path = os.path.join(contexts_folder(), CURRENT)
    if name == HERE:
        files.discard(path)
        return
    load(name)
    files.replace_file(path, f"{name}\n".encode())


def load(name: str) -> Context:
    """Raises ``NoSuchContext``, ``OpenToOthers``, or ``files.CannotRead``."""
    if not is_name(name):
        raise NoSuchContext(name)
    path = _path(name)
    try:
        _check(name, path)
        kept = files.read_object(path)
    except FileNotFoundError:
        raise NoSuchContext(name) from None
    authorities = _path(name, AUTHORITIES)
    trusted = authorities if kept.get("own_authorities") is True else ""
    return Context(name, str(kept.get("url", "")), str(kept.get("token", "")), trusted)


def names() -> list[str]:
    try:
        found = os.listdir(contexts_folder())
    except FileNotFoundError:
        return []
    return sorted(name.removesuffix(ENDING) for name in found if name.endswith(ENDING) and not name.startswith("."))


def add(name: str, url: str, token: str, authorities: bytes) -> Context:
    """Raises ``ContextExists`` or ``UsageError``. ``authorities`` are copied: the file that they came from may go."""
    if not is_name(name) or name in (HERE, CURRENT):
        raise UsageError(
            f"expected a context's name to have letters, digits, '-', '_' and '.', and not to be {HERE!r}, "
            f"but got {name[:80]!r}"
        )
    place = contexts_folder()
    os.makedirs(place, 0o700, exist_ok=True)
    if os.path.lexists(_path(name)):
        raise ContextExists(name)
    if authorities:
        files.replace_file(_path(name, AUTHORITIES), authorities)
    kept: dict[str, object] = {"url": url, "token": token, "own_authorities": bool(authorities)}
    files.write_object(_path(name), {"schema": files.SCHEMA, **kept, "added_at": files.stamp()})
    return replace(load(name), is_new=True)


def remove(name: str) -> None:
    """Raises ``NoSuchContext``."""
    if name not in names():
        raise NoSuchContext(name)
    if current() == name:
        use(HERE)
    files.discard(_path(name))
    files.discard(_path(name, AUTHORITIES))


def is_name(text: str) -> bool:
    letters = text.replace("-", "").replace("_", "").replace(".", "")
    return letters.isascii() and letters.isalnum() and len(text) <= LONGEST_NAME and text[0] not in "-."


def _path(name: str, ending: str = ENDING) -> str:
    return os.path.join(contexts_folder(), name + ending)


def _check(name: str, path: str) -> None:
    found = os.stat(path, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise OpenToOthers(name, path, "it is not a file")
    if found.st_uid != os.geteuid():
        raise OpenToOthers(name, path, f"it belongs to user {found.st_uid}")
    if found.st_mode & 0o077:
        raise OpenToOthers(name, path, f"others may open it (mode {stat.S_IMODE(found.st_mode):04o})")
