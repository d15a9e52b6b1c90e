"""The state folder: where it is, and whether it is safe to use; and the folder of the settings."""

from __future__ import annotations

import os
import stat

from hitchpost.errors import HomeRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONTEXT_OPTION, CONTEXT_VARIABLE = "--context", "HITCHPOST_CONTEXT"
SESSIONS, QUARANTINE, FLEET = "sessions", "quarantine", "fleet.json"
ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH = 12


def home_path(environment: Mapping[str, str] = os.environ) -> str:
    if named := environment.get("HITCHPOST_HOME"):
        return os.path.abspath(named)
    own = environment.get("HOME") or os.path.expanduser("~")
    base = environment.get("XDG_STATE_HOME") or os.path.join(own, ".local/state")
    return os.path.join(os.path.abspath(base), "hitchpost")


def settings_folder() -> str:
    """Where a person's settings are, and what belongs to them: own agents, contexts."""
    if named := os.environ.get("HITCHPOST_CONFIG"):
        return os.path.dirname(named)
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "hitchpost")


def contexts_folder() -> str:
    return os.path.join(settings_folder(), "contexts")


def may_be_elsewhere(words: Sequence[str]) -> bool:
    """Whether a command line could be for a hub elsewhere: only then is loaded what knows. Every call asks this."""
    if CONTEXT_VARIABLE in os.environ or any(word.startswith(CONTEXT_OPTION) for word in words):
        return True
    return os.path.lexists(os.path.join(contexts_folder(), "current"))


def check_folder(path: str) -> None:
    """Raise ``HomeRefused`` unless ``path`` is a real folder of ours that nobody else may write to."""
    found = os.stat(path, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise HomeRefused(path, "it is a symbolic link", "name the real folder in HITCHPOST_HOME")
    if not stat.S_ISDIR(found.st_mode):
        raise HomeRefused(path, "it is not a folder", "name a folder in HITCHPOST_HOME")
    if found.st_uid != os.geteuid():
        raise HomeRefused(path, f"it belongs to user {found.st_uid}", "name a folder of your own in HITCHPOST_HOME")
    if found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        import shlex

        raise HomeRefused(path, f"others may write to it (mode {mode:04o})", f"run: chmod 700 {shlex.quote(path)}")


def open_home(*, create: bool = True) -> str:
    """The path of the home, checked; made with its folders when it is not there. ``create=False`` makes nothing."""
    home = home_path()
    for path in (home, os.path.join(home, SESSIONS)):
        try:
            check_folder(path)
        except FileNotFoundError:
            if not create:
                continue
            try:
                _make(path)
            except OSError as error:
                why = os.strerror(error.errno or 0).lower()
                raise HomeRefused(path, f"it cannot be made ({why})", "name another in HITCHPOST_HOME") from None
            check_folder(path)
        except OSError as error:
            raise HomeRefused(path, f"{error.strerror}".lower(), "name another in HITCHPOST_HOME") from None
    return home


def _make(path: str) -> None:
    """Make a folder and the parents that it lacks, all of them for their owner only, whatever the umask lets others."""
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        _make(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return


def is_copy(home: str) -> bool:
    """Whether the home is a hub's copy of a fleet: what is written there by anybody else is lost."""
    return os.path.lexists(os.path.join(home, FLEET))


def new_id() -> str:
    """From the kernel itself: ``secrets`` would bring a library of hashes with it."""
    number = int.from_bytes(os.urandom(32), "big")
    letters = ""
    for _ in range(ID_LENGTH):
        number, letter = divmod(number, len(ID_LETTERS))
        letters += ID_LETTERS[letter]
    return letters


def is_id(text: str) -> bool:
    return len(text) == ID_LENGTH and all(letter in ID_LETTERS for letter in text)


def sessions_folder(home: str) -> str:
    return os.path.join(home, SESSIONS)


def session_folder(home: str, session: str) -> str:
    return os.path.join(home, SESSIONS, session)


def home_of(session_folder: str) -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(session_folder)))


def run_folder(folder: str, run: int) -> str:
    return f"{folder}/runs/{run}"


def make_run_folder(folder: str, run: int) -> str:
    """Make the run's folder where it is not there yet. Raises ``HomeRefused`` for one that somebody else planted."""
    where = run_folder(folder, run)
    for path in (os.path.dirname(where), where):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            check_folder(path)
    return where
