"""A container's copy of the git folder, as an agent finds it, without a container: git works in it from here."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from hitchpost.store.home import new_id
from hitchpost.values import replace
from hitchpost.workspaces import container_git, store, worktree
from hitchpost.workspaces.store import Workspace
from hitchpost.workspaces.tree import Tree
from tests.repos import Repo


@dataclass(frozen=True, slots=True)
class Copy:
    """``folder`` is the container's git folder, ``tree`` the worktree with it."""

    home: str
    workspace: Workspace
    session: Path

    @property
    def folder(self) -> Path:
        return self.session / container_git.FOLDER

    @property
    def tree(self) -> Tree:
        return store.tree(self.home, store.read(self.home, self.workspace.id))

    def git(self, *words: str | Path, stdin: bytes = b"") -> str:
        """As the agent's git does it: with the copy, the repository's objects beside it, and the worktree."""
        own = self.folder / self.tree.own
        argv = ["git", f"--git-dir={own}", f"--work-tree={self.workspace.path}", *map(str, words)]
        done = subprocess.run(argv, cwd=self.workspace.path, input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().rstrip("\n")

    def commit(self, name: str, text: str = "text\n") -> str:
        Path(self.workspace.path, name).write_text(text)
        self.git("add", "--", name)
        self.git("commit", "-q", "-m", f"change {name}")
        return self.git("rev-parse", "HEAD")


def copied(home: Path, repo: Repo, branch: str = "fix") -> Copy:
    """A workspace in which a container works."""
    made = worktree.make(str(home), str(repo.path), branch).workspace
    session = home / "sessions" / new_id()
    session.mkdir(mode=0o700, parents=True)
    path = container_git.make(store.tree(str(home), made), str(session))
    made = store.write(str(home), replace(made, inside=path, contained=True))
    alternates = session / container_git.FOLDER / "objects/info/alternates"
    alternates.write_text(f"{repo.path}/.git/objects\n")  # where a container has them is another place
    return Copy(str(home), made, session)
