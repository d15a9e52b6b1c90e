"""There is one keeper for each run, for days: it must stay small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hitchpost
from tests.ground import Ground

SOURCE = Path(hitchpost.__file__).parent.parent
HEAVY = {
    "collections",
    "contextlib",
    "dataclasses",
    "enum",
    "functools",
    "inspect",
    "json",
    "logging",
    "re",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "threading",
    "typing",
}
C_MODULES = {
    "_ctypes",
    "_json",
    "_signal",
    "binascii",
    "_socket",
    "errno",
    "fcntl",
    "gc",
    "math",
    "resource",
    "select",
    "termios",
    "time",
}
NEEDED_BY_OS = {"__future__", "_abc", "_collections_abc", "_stat", "abc", "genericpath", "os"}
NEEDED_BY_OS |= {"os.path", "posixpath", "stat"}
MOST_RESIDENT_KIB = 20_000


def modules(program: str) -> set[str]:
    command = [sys.executable, "-I", "-S", "-c", f"import sys; {program}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_keeper_imports_c_modules_and_its_own_and_nothing_else():
    bare = modules("pass")
    loads = "import hitchpost.keeper.main as main, hitchpost.keeper.sources.pty; main.process.become_subreaper()"
    added = modules(f"sys.path.append({str(SOURCE)!r}); {loads}") - bare
    assert added & HEAVY == set()
    foreign = {name for name in added if not name.startswith("hitchpost")}
    assert foreign <= C_MODULES | NEEDED_BY_OS


def test_a_running_keeper_is_small(ground: Ground):
    dev = ground.begin("sleep", "1000")
    status = Path(f"/proc/{dev.keeper_pid()}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) < MOST_RESIDENT_KIB
    ground.end(dev)
