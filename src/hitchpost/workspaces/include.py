"""``.worktreeinclude``: ignored files of the main worktree that a new one needs too, such as ``.env``."""

from __future__ import annotations

import os
import shlex
import shutil
import stat

from hitchpost.store import files
from hitchpost.workspaces import container_writes, git
from hitchpost.workspaces.git import Repository
from hitchpost.workspaces.tree import Tree, described
from hitchpost.workspaces.view import View, listed

FILE = ".worktreeinclude"


def copy(home: str, repository: Repository, target: str) -> list[str]:
    """Copy what the main worktree's ``.worktreeinclude`` matches and git ignores; a note when something was left out.

    Nothing is overwritten; no link is followed or copied, and nothing goes into a ``.git``. Where an agent in a
    container could write, nothing is copied: it would choose the files, and programs of this side would read them.
    """
    main = repository.main
    if main is None or not os.path.lexists(os.path.join(main, FILE)):
        return []
    if container_writes.could_write(home, os.path.join(main, FILE)):
        todo = f"look at them; then hitch workspace trust {shlex.quote(main)}"
        return [f"{FILE}: nothing was copied, because an agent in a container could write the files; {todo}"]
    try:
        left_out = [path for path in matching(repository) if not _copy_one(main, target, path)]
    except OSError as error:
        return [f"{FILE}: it cannot be read ({os.strerror(error.errno or 0).lower()})"]
    return [f"{FILE}: not copied, because they are links or go through one: {', '.join(left_out)}"] if left_out else []


def matching(repository: Repository) -> list[str]:
    """The files of the main worktree that it matches and git ignores. Raises ``OSError`` when it cannot be read."""
    if repository.main is None:
        return []
    patterns = files.read_bytes(os.path.join(repository.main, FILE))
    tree = described(repository.main, repository.common, "")
    return [] if tree is None else _matching(tree, patterns)


def _matching(tree: Tree, patterns: bytes) -> list[str]:
    with View(tree) as view:
        rules = os.path.join(view.folder, FILE)
        with open(rules, "wb") as file:
            file.write(patterns)
        words = ("ls-files", "-z", "--others", "--ignored", f"--exclude-from={rules}")
        named = [path for path in view.run(*words).items if not path.endswith("/")]
        asking = ("check-ignore", "-z", "--stdin")
        if not named:
            return []
        ignored = view.run(*asking, stdin=listed(named), env={"GIT_LITERAL_PATHSPECS": "0"}, check=False)
        if ignored.code > 1:
            raise git.failure(tree.top, "check-ignore", ignored)
    return [path for path in ignored.items if ".git" not in path.split("/")]


def _copy_one(main: str, target: str, path: str) -> bool:
    """False when the file is no plain file inside the worktree, or its new place would not be one."""
    source, copied = os.path.join(main, path), os.path.join(target, path)
    if not _is_inside(main, os.path.dirname(source)) or not _is_inside(target, os.path.dirname(copied)):
        return False
    try:
        fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with open(fd, "rb") as old:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            return False
        os.makedirs(os.path.dirname(copied), exist_ok=True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(copied, flags, stat.S_IMODE(mode) & 0o777), "wb") as new:
                shutil.copyfileobj(old, new)
        except FileExistsError:
            pass
    return True


def _is_inside(top: str, folder: str) -> bool:
    """Whether no link leads from ``top`` to ``folder``, which need not be there yet."""
    real = os.path.realpath(top)
    return os.path.realpath(folder) == os.path.normpath(os.path.join(real, os.path.relpath(folder, top)))
