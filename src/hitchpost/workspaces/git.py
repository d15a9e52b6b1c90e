"""Git, as a program. Every call goes through ``run``: an argument list, a clean environment, limits."""

from __future__ import annotations

import functools
import os
import re
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping

from hitchpost.errors import GitFailed, GitLocked, NotARepository, Refused, UsageError
from hitchpost.system.programs import absolute
from hitchpost.values import value

READ_S, WRITE_S = 60.0, 1800.0
PROGRESS_EVERY_S = 1.0
MOST_BYTES, MOST_ERROR_BYTES, MOST_MEMORY_BYTES = 64 << 20, 64 << 10, 2 << 30
OLDEST = (2, 31)
SETTINGS = ("core.fsmonitor=false", "core.quotePath=false", "core.safecrlf=false", "advice.addEmbeddedRepo=false")
SAFE = tuple(word for setting in SETTINGS for word in ("-c", setting))
PASSED_ON = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_LFS_SKIP_SMUDGE")
OF_A_PERSON = ("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR", "TZ", *PASSED_ON)
SEARCHED = ("PATH", "LD_LIBRARY_PATH")
NO_TRANSFER = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Git fetches what a partial clone lacks with programs that the repository's settings name."""
NOT_KNOWN = "not a git repository"

Progress = Callable[[float], None]


@value
class Done:
    """How a command ended. ``out`` is bytes: file names are. ``cut`` says that there would have been more of it."""

    code: int
    out: bytes
    err: str
    cut: bool = False

    @property
    def line(self) -> str:
        """The output without the newline at its end."""
        return os.fsdecode(self.out.removesuffix(b"\n"))

    @property
    def items(self) -> list[str]:
        """The output of a command with ``-z``."""
        return [os.fsdecode(item) for item in self.out.split(b"\0") if item]


@value
class Repository:
    """``common`` is the git folder that all worktrees share; ``top`` the worktree that one is in, if any.

    ``own`` is the git folder of that worktree.
    """

    common: str
    top: str | None
    own: str = ""

    @property
    def main(self) -> str | None:
        """The main worktree; a bare repository and a submodule have none that can be told."""
        return os.path.dirname(self.common) if os.path.basename(self.common) == ".git" else None

    @property
    def name(self) -> str:
        return os.path.basename(self.main or self.common).removesuffix(".git") or "repository"


def silent(waited_s: float) -> None:
    """Progress that nobody looks at."""


def environment(caller: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without what points git, or a program that uses it, to another repository."""
    env = os.environ if caller is None else caller
    return {name: text for name, text in env.items() if not name.startswith("GIT_") or name in PASSED_ON}


def own_environment() -> dict[str, str]:
    """For git that works among an agent's files, and runs nothing for the person: whose settings it reads, and where it
    and its libraries are. What would be looked for in the current folder is left out."""
    env = {name: os.environ[name] for name in OF_A_PERSON if name in os.environ}
    return env | {name: found for name in SEARCHED if (found := absolute(os.environ.get(name, "")))}


def settings_files() -> list[str]:
    """Where a person's own settings, and the machine's, usually are."""
    env = os.environ
    xdg = env.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    usual = ("/etc/gitconfig", os.path.expanduser("~/.gitconfig"), os.path.join(xdg, "git", "config"))
    return [*usual, *(env[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if name in env)]


def run(
    folder: str,
    *words: str,
    git_dir: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = READ_S,
    cpu_s: float | None = None,
    progress: Progress = silent,
    hooks: str | None = None,
    check: bool = True,
    most: int = MOST_BYTES,
    cut: bool = False,
    source: int | None = None,
    pass_fds: tuple[int, ...] = (),
) -> Done:
    """Run git in ``folder``. Raises ``GitFailed``, ``GitLocked`` or ``NotARepository``; see ``check``.

    With ``check=False`` an exit code other than 0 is the caller's to judge. Output of more than ``most`` bytes is an
    error, unless it may be ``cut``. ``cpu_s`` limits the processor's time, where that is less. ``source`` is an open
    file to read instead of ``stdin``. Hooks run, and missing objects are fetched, only where a person who types
    the same command would expect that: ``hooks`` is the folder of these hooks, empty for none.
    """
    where = () if git_dir is None else (f"--git-dir={git_dir}",)
    argv = ["git", *where, *SAFE, "-c", f"core.hooksPath={hooks or '/dev/null'}", *words]
    fixed = {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        **(NO_TRANSFER if hooks is None else {}),
    }
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=(own_environment() if hooks is None else environment()) | fixed | dict(env or {}),
            stdin=subprocess.PIPE if source is None else source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=pass_fds,
            bufsize=0,
        )
    except OSError as error:
        if not os.path.isdir(folder):
            raise Refused(f"the folder {folder} is gone") from None
        if isinstance(error, FileNotFoundError):
            raise GitFailed(words[0], "git is not on the PATH; install it") from None
        raise GitFailed(words[0], f"{error.strerror}".lower()) from None
    cpu_s = timeout_s if cpu_s is None else min(cpu_s, timeout_s)
    if hooks is None:
        _limit(process.pid, int(cpu_s) + 1)
    out, err = _finish(process, words[0], stdin, timeout_s, progress, most)
    if len(out) > most and not cut:
        raise GitFailed(words[0], f"it printed more than {most >> 20} MiB")
    done = Done(process.returncode, out[:most], err.decode("utf-8", "replace"), len(out) > most)
    if check and done.code == -signal.SIGXCPU:
        raise GitFailed(words[0], f"it took more than {cpu_s:g} s of processor time")
    if check and done.code != 0 and not done.cut:
        raise failure(folder, words[0], done)
    return done


def _limit(pid: int, cpu_s: int) -> None:
    """Of a process that has just begun. What it maps of files, such as packs, does not count as memory."""
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.prlimit(pid, resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    except (ProcessLookupError, PermissionError, ValueError):
        return  # it has ended already, or its limits are lower


def _finish(
    process: subprocess.Popen[bytes], what: str, stdin: bytes, timeout_s: float, progress: Progress, most: int
) -> tuple[bytes, bytes]:
    """Both outputs, at the process's end. No more of them is held than the limits, and one byte."""
    began = time.monotonic()
    out, err, left = bytearray(), bytearray(), memoryview(stdin)
    with process, selectors.DefaultSelector() as ready:
        try:
            for stream, said in ((process.stdout, out), (process.stderr, err)):
                if stream is not None:
                    ready.register(stream, selectors.EVENT_READ, said)
            if process.stdin is None:
                pass  # it reads a file
            elif left:
                os.set_blocking(process.stdin.fileno(), False)
                ready.register(process.stdin, selectors.EVENT_WRITE)
            else:
                process.stdin.close()
            shown_s = PROGRESS_EVERY_S
            while ready.get_map():
                for key, _ in ready.select(max(shown_s - (time.monotonic() - began), 0)):
                    if key.data is None:
                        left = _write(key.fd, left)
                        part = bytes(left[:1])
                    else:
                        part = os.read(key.fd, 65536)
                        key.data.extend(part)
                    if not part:
                        ready.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]
                del err[MOST_ERROR_BYTES:]
                if len(out) > most:
                    os.killpg(process.pid, signal.SIGKILL)
                    break
                waited_s = time.monotonic() - began
                if waited_s > timeout_s:
                    raise GitFailed(what, f"it did not end within {timeout_s:g} s")
                if waited_s >= shown_s:
                    shown_s = waited_s + PROGRESS_EVERY_S
                    progress(waited_s)
            _wait(process, what, max(timeout_s - (time.monotonic() - began), PROGRESS_EVERY_S))
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return bytes(out), bytes(err)


def _wait(process: subprocess.Popen[bytes], what: str, timeout_s: float) -> None:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise GitFailed(what, f"it did not end within {timeout_s:g} s") from None


def _write(fd: int, left: memoryview) -> memoryview:
    """What is left to write; nothing when nobody reads it any more."""
    try:
        return left[os.write(fd, left[:65536]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


def failure(folder: str, what: str, done: Done) -> GitFailed | NotARepository:
    """The error that says why ``done`` failed."""
    if NOT_KNOWN in done.err:
        return NotARepository(folder)
    if found := re.search(r"Unable to create '(.+\.lock)': File exists", done.err, re.DOTALL):
        return GitLocked(what, found[1])
    lines = [line for line in done.err.splitlines() if line.strip() and not line.startswith("hint:")]
    told = [line for line in lines if line.startswith(("fatal:", "error:"))]
    text = (told or lines or [f"exit code {done.code}"])[-1]
    return GitFailed(what, text.removeprefix("fatal: ").removeprefix("error: "))


@functools.cache
def require() -> None:
    """Raise ``GitFailed`` when git is missing or too old."""
    text = run("/", "version").line
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise GitFailed("version", f"expected git {wanted} or newer, but got {text!r}; install a newer one")


def repository(folder: str) -> Repository:
    """The repository that ``folder`` is in. Raises ``NotARepository``."""
    require()
    common = run(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").line
    own = run(folder, "rev-parse", "--absolute-git-dir").line
    top = run(folder, "rev-parse", "--path-format=absolute", "--show-toplevel", check=False)
    found = top.line if top.code == 0 and top.line else None
    return Repository(os.path.realpath(common), found, os.path.realpath(own))


def head(folder: str, git_dir: str | None = None) -> str | None:
    """The commit that is checked out; None when there is none yet."""
    return commit(folder, "HEAD", git_dir)


def commit(folder: str, name: str, git_dir: str | None = None) -> str | None:
    """The commit that ``name`` (``HEAD``, a whole ref name or a hash) stands for; None when there is none."""
    done = run(folder, "rev-parse", "--verify", "-q", f"{name}^{{commit}}", git_dir=git_dir, check=False)
    if done.code == 0:
        return done.line
    if done.err:
        raise failure(folder, "rev-parse", done)
    return None


def current_branch(folder: str, git_dir: str | None = None) -> str | None:
    """The branch that is checked out; None on a detached head."""
    done = run(folder, "symbolic-ref", "-q", "HEAD", git_dir=git_dir, check=False)
    return done.line.removeprefix("refs/heads/") if done.code == 0 else None


def git_folder(folder: str) -> str:
    """The git folder of this one worktree."""
    return run(folder, "rev-parse", "--absolute-git-dir").line


def check_branch(branch: str) -> None:
    """Raise ``UsageError`` unless ``branch`` can be a branch's name, as it stands."""
    good = branch and not branch.startswith("-") and branch != "HEAD" and "\0" not in branch
    if good:
        done = run("/", "check-ref-format", "--branch", branch, check=False)
        good = done.code == 0 and done.line == branch
    if not good:
        raise UsageError(f"{branch!r} cannot be the name of a branch; see git help check-ref-format", field="branch")
