"""A view of the machine for one program: other lists of users, and our source where others may not look for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = ["unshare", "-m", "--propagation", "slave", "sh", "-c"]
"""What is mounted below this, nobody else sees. A script comes next, then its ``$0``."""


def known_to_machine(folder: Path, name: str, uid: int) -> None:
    """A copy of ``/etc`` with one more user, for ``seen_with``."""
    etc = folder / "etc"
    subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)
    with (etc / "passwd").open("a") as users, (etc / "group").open("a") as groups:
        users.write(f"{name}:x:{uid}:{uid}::{folder}/home:/bin/sh\n")
        groups.write(f"{name}:x:{uid}:\n")
    for kind in ("subuid", "subgid"):
        (etc / kind).unlink(missing_ok=True)
        (etc / kind).write_text(f"{name}:100000:65536\n")


def seen_with(folder: Path) -> list[str]:
    """What runs below this sees other lists of users than the machine has, which are left alone."""
    return [*OWN, 'mount --bind "$0/etc" /etc && exec "$@"', str(folder)]


def with_source(source: Path = ROOT) -> list[str]:
    """What runs below this can read the source, also where that is in a folder that only its owner may enter.

    Of such a folder, as ``/root`` is, it sees nothing else.
    """
    closed = next((parent for parent in reversed(source.parents) if not parent.stat().st_mode & 0o001), None)
    if closed is None:
        return []
    # the folder stays open while the way to it is covered
    script = (
        'exec 9<"$0" && mount -t tmpfs -o mode=755 none "$1" && umask 022 && mkdir -p "$0" '
        '&& mount -c --bind /proc/self/fd/9 "$0" && exec 9<&- && shift && exec "$@"'
    )
    return [*OWN, script, os.fspath(source), os.fspath(closed)]


def as_user(uid: int, *capabilities: str) -> list[str]:
    kept = "".join(f",+{name}" for name in capabilities)
    rights = [f"--{kind}=-all{kept}" for kind in ("inh-caps", "ambient-caps", "bounding-set") if kept]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *rights, "--"]
