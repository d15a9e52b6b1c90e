"""The programs of the cluster, which ``script/kube`` builds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("ip", "nsenter", "unshare", "setsid", "iptables")


def place() -> Path | None:
    done = subprocess.run([ROOT / "script/kube", "--check"], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def why_not() -> str:
    """Why there can be no cluster here."""
    if os.geteuid() != 0:
        return "only root can start one"
    if missing := [program for program in NEEDED if shutil.which(program) is None]:
        return f"these programs are missing: {', '.join(missing)}"
    if not os.path.isdir("/sys/fs/cgroup/pids"):
        return "the machine has only cgroups of version 2, with which it was not tried"
    return "" if place() else "Kubernetes is not built: script/kube builds it"
