"""Our own git folder, through which git looks at the files of an agent.

It is made for one look and thrown away. Nothing in it was written by an agent: settings are ours and a few plain
values of the repository's, there are no hooks, no filters and no other programs, and refs are read by us. The objects
are the repository's. The index is our own, kept between looks, so that an agent cannot hide a change from it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from hitchpost.errors import FAILURES, Refused
from hitchpost.store import files
from hitchpost.store.home import home_path
from hitchpost.system.scratch import scratch_folder
from hitchpost.values import replace
from hitchpost.workspaces import container_commits, git, objects, refs
from hitchpost.workspaces.refs import Head
from hitchpost.workspaces.tree import Tree, keep_index, kept_index, linked_or_copied

GITLINK = "160000"
EMPTY_FILE = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
EMPTY_TREE = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)
"""With SHA-1, and with SHA-256."""
LOOK_S, LOOK_CPU_S = 60.0, 20.0
"""An agent can make a look as long as it likes: by a pattern that takes ages to match, or a file without an end."""
MOST_INDEX_BYTES = 128 << 20
"""Of a copy in memory: an index of a million files is smaller."""
MOST_INFO_BYTES = 1 << 20
LEAST_ROOM_BYTES = 16 << 20
MOST_DIFFED_BYTES = 8 << 20
INFO = ("exclude", "attributes")
TAKEN_OVER = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.trustctime",
    "core.excludesfile",
    "core.attributesfile",
    "extensions.objectformat",
)
"""Settings that say how files are compared. None of them names a program."""
FIXED = f"""[core]
bare = false
fsmonitor = false
hooksPath = /dev/null
quotePath = false
safecrlf = false
bigFileThreshold = {MOST_DIFFED_BYTES}
[advice]
addEmbeddedRepo = false
[diff]
ignoreSubmodules = all
[submodule]
recurse = false
[protocol]
allow = never
[gc]
auto = 0
"""
_known_settings: dict[tuple[object, ...], bytes] = {}
ENVIRONMENT = {
    "GIT_WORK_TREE": ".",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}


class View:
    """A look at a worktree. ``with View(tree) as view``: then ``view.run`` runs git in it.

    ``writing`` puts new objects into the repository, instead of beside the view, and holds every container still that
    can write in the worktree. Raises ``Refused`` when the worktree is not the one that was written down, or when nobody
    can tell what is checked out, ``NotStill`` when a container goes on.
    """

    def __init__(self, tree: Tree, *, writing: bool = False) -> None:
        self.tree, self.writing = tree, writing
        self._held: tuple[int, ...] = ()
        self._after = ExitStack()

    def __enter__(self) -> View:
        git.require()
        if self.tree.inside:
            self._bring_out()
        self.top = self.tree.open()
        try:
            self.head: Head = self.tree.head()
            self.folder = scratch_folder(_home(self.tree), self._room_bytes())
            try:
                self._make()
                if self.writing:
                    self._held = self._after.enter_context(still_around(self.tree))
            except BaseException:
                shutil.rmtree(self.folder)
                raise
        except BaseException:
            os.close(self.top)
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        os.close(self.top)
        shutil.rmtree(self.folder)
        self._after.__exit__(*error)

    def _bring_out(self) -> None:
        """What a container has committed is looked at in the repository. What cannot be brought there is not."""
        try:
            container_commits.bring_out(self.tree, objects.LOOK)
            current = container_commits.is_current(self.tree) and container_commits.is_brought(self.tree)
            if current:
                self._refuse_endless(self.tree.head().commit)
        except FAILURES:
            current = False
        if not current:
            self.tree = replace(self.tree, inside="")

    def _refuse_endless(self, commit: str | None) -> None:
        """A few trees that name each other can stand for any number of files. Raises ``GitFailed`` for too many."""
        if commit is not None and not kept_index(self.tree).endswith(f"-{commit}"):
            git.run("/", *objects.LISTING, commit, git_dir=self.tree.common, cpu_s=LOOK_CPU_S)

    def run(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        timeout_s: float = LOOK_S,
        cpu_s: float | None = None,
        pass_fds: tuple[int, ...] = (),
        **how: Any,
    ) -> git.Done:
        """Git, in the worktree, with nothing but this folder of ours. A pipe that git waits for ends it."""
        own = {"GIT_DIR": self.folder, "GIT_OBJECT_DIRECTORY": self._objects}
        self._look_after_s = 0.0
        where = f"/proc/self/fd/{self.top}"
        return git.run(
            where,
            *words,
            env=ENVIRONMENT | own | dict(env or {}),
            timeout_s=timeout_s,
            cpu_s=timeout_s if self.writing else cpu_s or LOOK_CPU_S,
            progress=self._refuse_pipes,
            pass_fds=(*self._held, *pass_fds),
            **how,
        )

    def tree_of(self, commit: str) -> str:
        return self.run("rev-parse", "--verify", "-q", f"{commit}^{{tree}}").line

    def has(self, commit: str) -> bool:
        return self.run("cat-file", "-e", f"{commit}^{{commit}}", check=False).code == 0

    @property
    def empty_file(self) -> str:
        """The name of a file without content. Git knows it without an object."""
        return EMPTY_FILE[len(self.head.commit or "") == 64]

    @property
    def empty_tree(self) -> str:
        """The name of a tree without files. Git knows it without an object."""
        return EMPTY_TREE[len(self.head.commit or "") == 64]

    # making it --------------------------------------------------------------------------------------------------

    def _room_bytes(self) -> int:
        """For an index, and for another one while it is written."""
        try:
            return LEAST_ROOM_BYTES + 4 * os.stat(kept_index(self.tree) or self.tree.index).st_size
        except OSError:
            return LEAST_ROOM_BYTES

    def _make(self) -> None:
        for name in ("objects", "objects/info", "refs", "info"):
            os.mkdir(os.path.join(self.folder, name))
        self._objects = self.tree.objects if self.writing else os.path.join(self.folder, "objects")
        self._put("HEAD", (self.head.commit or "ref: refs/heads/none").encode())
        link = os.path.join(self.folder, "repository")  # a plain name, whatever the folder is called
        os.symlink(self.tree.objects, link)
        self._put("objects/info/alternates", link.encode())
        for name in INFO:
            self._take_over(self.tree.common, f"info/{name}", f"info/{name}")
        self._put("config", FIXED.encode() + self._settings())
        self._index()

    def _put(self, name: str, content: bytes) -> None:
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content + b"\n")

    def _take_over(self, top: str, path: str, name: str, most: int = MOST_INFO_BYTES) -> bool:
        try:
            content = refs.read_below(top, path, most)
        except OSError:
            return False
        self._put(name, content)
        return True

    def _settings(self) -> bytes:
        """Known from an earlier look of this process while the files that usually hold them are as they were."""
        key = (self.tree.common, *map(_version, (os.path.join(self.tree.common, "config"), *git.settings_files())))
        found = _known_settings.get(key)
        if found is None:
            found = self._read_settings()
            _known_settings.clear()
            _known_settings[key] = found
        return found

    def _read_settings(self) -> bytes:
        pattern = f"^({'|'.join(name.replace('.', '[.]') for name in TAKEN_OVER)})$"
        found = git.run("/", "config", "-z", "--get-regexp", pattern, git_dir=self.tree.common, check=False)
        lines = []
        for item in found.out.split(b"\0"):
            name, given, text = item.partition(b"\n")
            text = text if given else b"true"
            section, _, key = name.partition(b".")
            if not name or b"\n" in text:
                continue
            if section == b"extensions":
                lines.append(b"[core]\nrepositoryFormatVersion = 1")
            quoted = text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            lines.append(b'[%s]\n%s = "%s"' % (section, key, quoted))
        return b"\n".join(lines)

    # the index --------------------------------------------------------------------------------------------------

    def _index(self) -> None:
        """Ours of an earlier look, when that was at the same commit; else made anew, and kept for the next one."""
        index, commit = os.path.join(self.folder, "index"), self.head.commit
        kept = kept_index(self.tree)
        sparse = f"{self.tree.own}/info/sparse-checkout".removeprefix("/")
        whole = not self._take_over(self.tree.inside or self.tree.common, sparse, "info/sparse-checkout")
        if kept and linked_or_copied(kept, index) and whole and kept.endswith(f"-{commit}"):
            return
        if commit is None:
            files.discard(index)
            return
        self.run("read-tree", *(("--reset", "-i") if kept else ()), commit)
        known = self._without_repositories()
        if not whole:
            self._leave_out(known)
        refreshed = self.run("update-index", "-q", "--refresh", check=False, timeout_s=git.WRITE_S).code >= 0
        files.discard(os.path.join(self.folder, "index.lock"))  # of one that took too long
        if whole and refreshed:
            keep_index(self.tree, index, commit)

    def _without_repositories(self) -> list[str]:
        """Repositories inside are never entered, so they are not in our index; what is."""
        entries = self.run("ls-files", "-z", "--stage").items
        inside = [entry.partition("\t")[2] for entry in entries if entry.startswith(GITLINK)]
        if inside:
            self.run("update-index", "--force-remove", "-z", "--stdin", stdin=listed(inside))
        return [entry.partition("\t")[2] for entry in entries if not entry.startswith(GITLINK)]

    def _leave_out(self, known: list[str]) -> None:
        """Files that a sparse checkout leaves out are not missing. The agent decides which, so this is not kept."""
        with_bits = {"GIT_INDEX_FILE": self.agents_index()}
        told = self.run("ls-files", "-z", "-t", env=with_bits, check=False).items
        left_out = {item[2:] for item in told if item.startswith("S ")}
        if absent := [path for path in known if path in left_out and not self._is_there(path)]:
            self.run("update-index", "--skip-worktree", "-z", "--stdin", stdin=listed(absent))

    def _is_there(self, path: str) -> bool:
        try:
            os.stat(path, dir_fd=self.top, follow_symlinks=False)
        except OSError:
            return False
        return True

    def agents_index(self) -> str:
        """A copy of the worktree's own index. What it says is the agent's word, and only that."""
        path = os.path.join(self.folder, "agents-index")
        source = f"{self.tree.own}/index".removeprefix("/")
        try:
            with open(path, "wb") as file:
                for part in refs.parts_below(self.tree.inside or self.tree.common, source, MOST_INDEX_BYTES):
                    file.write(part)
        except OSError:
            files.discard(path)
        return path

    # pipes ------------------------------------------------------------------------------------------------------

    def _refuse_pipes(self, waited_s: float) -> None:
        """Git waits for ever for the other end of a pipe that has the name of a file. Looked for now and then."""
        if waited_s < self._look_after_s:
            return
        self._look_after_s = 4 * waited_s
        todo = [""]
        while todo:
            place = todo.pop()
            try:
                with os.scandir(f"/proc/self/fd/{self.top}/{place}") as found:
                    entries = list(found)
            except OSError:
                continue  # git cannot open it either
            for entry in entries:
                path = os.path.join(place, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    todo.append(path)
                elif not entry.is_file(follow_symlinks=False) and self._is_pipe(path):
                    where = os.path.join(self.tree.top, path)
                    raise Refused(f"{where} is a pipe, which would block git forever; remove it")

    def _is_pipe(self, path: str) -> bool:
        try:
            return stat.S_ISFIFO(os.stat(path, dir_fd=self.top, follow_symlinks=False).st_mode)
        except OSError:
            return False


def still_around(tree: Tree) -> AbstractContextManager[tuple[int, ...]]:
    """Nothing runs meanwhile in a container that can write in the worktree."""
    from hitchpost.runtimes.freeze import still

    return still(_home(tree), tree.top)


def containers_around(tree: Tree) -> bool:
    """Whether a container lives that can write in the worktree."""
    from hitchpost.runtimes.freeze import within_reach

    return bool(within_reach(_home(tree), tree.top))


def _home(tree: Tree) -> str:
    return os.path.dirname(os.path.dirname(tree.keep)) if tree.keep else home_path()


def _version(path: str) -> tuple[int, int]:
    """Another one when somebody has written the file."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


def listed(paths: list[str]) -> bytes:
    """For git commands that read names with ``-z --stdin`` and their like."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
