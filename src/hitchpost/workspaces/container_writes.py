"""What agents in containers could write: folders, and commits. It decides nothing here until a person has looked at it.

A folder is noted before a container gets it. From then on a ``.git`` at or below it is nobody's repository, unless the
container had a copy in its place. A commit is noted before it is brought out. A worktree that begins with one gets its
files, and nothing is run for it. ``hitch workspace trust`` is how a person says that it was looked at.
"""

from __future__ import annotations

import os

from hitchpost.errors import NotARepository, Refused
from hitchpost.store import files, locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from hitchpost.workspaces.git import Repository

PLACE, FOLDERS, LOCK = "contained", "folders.json", "lock"
MOST_COMMITS, MOST_SEEN = 200_000, 100


# Folders --------------------------------------------------------------------------------------------------------


def note_folders(home: str, folder: str, copied: str | None = None, mounts: list[str] | None = None) -> None:
    """Before a container starts: it can write all that is in these.

    But in its own ``folder`` not what it has a copy of, unless that is in a mount as well, or another container could
    write it before.
    """
    others = [os.path.realpath(path) for path in mounts or []]
    noted = [os.path.realpath(folder), *others]
    with _locked(home):
        known, own = _folders(home)
        kept = {path for path in own if not _is_in(path, noted)}
        lost = copied is None or (copied not in own and _is_in(copied, known))
        if copied is not None and not lost and not _is_in(copied, others):
            kept.add(copied)
        if (kept, known | set(noted)) != (own, known):
            _write(home, FOLDERS, folders=sorted(known | set(noted)), own=sorted(kept))


def could_write(home: str, path: str) -> bool:
    """Whether an agent in a container could write this ``.git`` or git folder, and nobody has taken it as theirs."""
    known, own = _folders(home)
    return _is_in(path, known) and not _is_in(path, own)


def could_write_in(home: str, folder: str) -> bool:
    """Whether an agent in a container could write any of the files there."""
    return any(is_below(folder, known) or is_below(known, folder) for known in _folders(home)[0])


def strange(home: str, folder: str) -> str | None:
    """What makes ``folder`` a repository, when a container could write that."""
    if (link := nearest(folder)) is not None and could_write(home, link):
        return link
    try:
        from hitchpost.workspaces import git  # slow to load, and most folders need no more than a look

        return _strange_part(home, git.repository(folder))
    except NotARepository:
        return None


def _strange_part(home: str, found: Repository) -> str | None:
    return next((path for path in (found.common, found.own) if could_write(home, path)), None)


def repository(home: str, folder: str) -> Repository:
    """The repository that ``folder`` is in. Raises ``Refused`` when a container could write what makes it one.

    From now on it is this one, whatever a container puts beside the folder: git is told where it is.
    """
    from hitchpost.workspaces import git

    if (link := nearest(folder)) is not None and could_write(home, link):
        raise not_yours(link, folder)
    found = git.repository(folder)
    if (part := _strange_part(home, found)) is not None:
        raise not_yours(part, folder)
    return found


def nearest(folder: str) -> str | None:
    """The ``.git`` that git finds first, whatever it is."""
    place = os.path.realpath(folder)
    while not os.path.lexists(link := os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return None
        place = os.path.dirname(place)
    return link


def not_yours(git_folder: str, folder: str = "") -> Refused:
    """``folder`` is where a person finds it, when that is not beside it."""
    beside = os.path.dirname(git_folder) if os.path.basename(git_folder) == ".git" else git_folder
    text = f"an agent in a container could write {git_folder}, and its settings and hooks would run as you"
    return Refused(text, _way(folder or beside))


def unused(home: str, folder: str) -> list[str]:
    """A note for who works in a folder with a ``.git`` that is nobody's repository."""
    link = nearest(folder)
    if link is None or not could_write(home, link):
        return []
    return [f"{link} is not used, because an agent in a container could write it; {_way(os.path.dirname(link))}"]


def _way(folder: str) -> str:
    import shlex

    return f"look at it; then hitch workspace trust {shlex.quote(folder)} takes it as yours"


def accept(home: str, path: str) -> None:
    """A person takes it as theirs, until a container can write it again. Raises ``Refused`` while one can."""
    refuse_live(home, path, path)
    with _locked(home):
        known, own = _folders(home)
        _write(home, FOLDERS, folders=sorted(known), own=sorted(own | {path}))


def refuse_live(home: str, path: str, what: str) -> None:
    """Raise ``Refused`` while a container lives that can write there, whether its agent has ended or not."""
    from hitchpost.runtimes.freeze import within_reach

    for live in within_reach(home, path):
        raise Refused(
            f"the container of {live.name} still runs and can write {what}", f"hitch stop {live.word} removes it"
        )


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(is_below(path, folder) for folder in folders)


def is_below(path: str, folder: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(folder, ""))


def _folders(home: str) -> tuple[set[str], set[str]]:
    """Those that containers could write, and what in them is ours all the same."""
    known = _read(home, FOLDERS)
    return _texts(known.get("folders")), _texts(known.get("own"))


# Commits --------------------------------------------------------------------------------------------------------


def note_commits(home: str, repo: str, commits: list[str]) -> None:
    """Before they are brought out of a container. When there are too many to remember, every commit counts as one."""
    if not commits:
        return
    with _locked(home):
        known = _read(home, _name(repo))
        noted = _texts(known.get("commits")) | set(commits)
        is_full = known.get("everything") is True or len(noted) > MOST_COMMITS
        _write(
            home,
            _name(repo),
            repo=repo,
            commits=[] if is_full else sorted(noted),
            everything=is_full,
            seen=known.get("seen", []),
        )


def made_inside(home: str, repo: str, commit: str | None) -> str | None:
    """A commit that ``commit`` leads to, that was made in a container, and that nobody has looked at; the newest."""
    known = _read(home, _name(repo))
    noted, seen = _texts(known.get("commits")), known.get("seen")
    everything = known.get("everything") is True
    if commit is None or not (noted or everything):
        return None
    asked = [commit, *(f"^{text}" for text in seen)] if isinstance(seen, list) else [commit]
    words = ("rev-list", "--ignore-missing", "--topo-order", "--stdin")
    from hitchpost.workspaces import git

    told = git.run("/", *words, git_dir=repo, stdin="".join(f"{text}\n" for text in asked).encode())
    return next((text for text in told.out.decode().split() if everything or text in noted), None)


def look_at(home: str, repo: str, commit: str) -> None:
    """A person has looked at this commit, and at all that it leads to."""
    with _locked(home):
        known = _read(home, _name(repo))
        if known:
            seen = known.get("seen")
            kept = [text for text in seen if text != commit][-MOST_SEEN + 1 :] if isinstance(seen, list) else []
            _write(home, _name(repo), **{**known, "seen": [*kept, commit]})


def _name(repo: str) -> str:
    import hashlib

    return f"{hashlib.sha256(os.fsencode(repo)).hexdigest()[:16]}.json"


# Files ----------------------------------------------------------------------------------------------------------


def _locked(home: str) -> locks.Lock:
    os.makedirs(os.path.join(home, PLACE), mode=0o700, exist_ok=True)
    return locks.Lock(os.path.join(home, PLACE, LOCK))


def _read(home: str, name: str) -> dict[str, object]:
    """Raises ``Unreadable`` when a file is broken: what is not known is not trusted."""
    try:
        return files.read_object(os.path.join(home, PLACE, name))
    except FileNotFoundError:
        return {}


def _write(home: str, name: str, **known: object) -> None:
    files.write_object(os.path.join(home, PLACE, name), {**known, "schema": files.SCHEMA})


def _texts(found: object) -> set[str]:
    return {str(text) for text in found} if isinstance(found, list) else set()
