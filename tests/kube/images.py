"""Images without a registry: archives that containerd reads. None holds a copy of the machine's programs.

Every container of the cluster has the machine's ``/usr``, this Python and this project mounted, read-only (``mounts``):
by its containerd, so a pod need not ask for it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kube.programs import ROOT

PAUSE = "hitchpost.test/pause:1"
SESSION = "hitchpost.test/session:1"
"""Busybox, and nothing else."""
HITCHPOST = "hitchpost.test/hitchpost:1"
"""The machine's programs, and the project: ``python -m hitchpost.pod`` works."""
OURS = "opt/hitchpost"
PYTHON = f"/{OURS}/bin/python"
FOLDERS = ("dev", "etc", "proc", "root", "sys", "tmp")
USERS = "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"
GROUPS = "root:x:0:\nagent:x:1000:\n"


@dataclass(slots=True)
class Image:
    name: str
    command: list[str]
    path: str
    """Where its programs are."""
    folders: tuple[str, ...] = FOLDERS
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def layer(self) -> bytes:
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as tar:
            parents = {str(parent) for name in (*self.files, *self.links) for parent in Path(name).parents} - {"."}
            for name in sorted(parents | set(self.folders)):
                entry = tarfile.TarInfo(name)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
                tar.addfile(entry)
            for name, content in self.files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o755
                tar.addfile(entry, io.BytesIO(content))
            for name, target in self.links.items():
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
        return whole.getvalue()

    def write(self, path: Path) -> None:
        layer = self.layer()
        digest = hashlib.sha256(layer).hexdigest()
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [f"PATH={self.path}"], "Cmd": self.command, "WorkingDir": "/root"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": "2026-01-01T00:00:00Z"}],
        }
        manifest = [{"Config": "config.json", "RepoTags": [self.name], "Layers": ["layer.tar"]}]
        parts = {"layer.tar": layer, "config.json": as_json(config), "manifest.json": as_json(manifest)}
        with tarfile.open(path, "w") as tar:
            for name, content in parts.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))


def as_json(found: Any) -> bytes:
    return json.dumps(found).encode()


def images(parts: Path) -> dict[str, Image]:
    """By name, of the static programs in the folder ``parts``."""
    busybox, tini = (parts / "busybox").read_bytes(), (parts / "tini-static").read_bytes()
    said = subprocess.run([parts / "busybox", "--list"], capture_output=True, text=True, check=True).stdout
    tools = {f"bin/{name}": "busybox" for name in said.split() if name != "busybox"}
    users = {"etc/passwd": USERS.encode(), "etc/group": GROUPS.encode()}
    forever = ["/bin/tini", "--", "/bin/busybox", "sleep", "2147483647"]
    found = (
        Image(PAUSE, forever, "/bin", files={"bin/busybox": busybox, "bin/tini": tini}),
        Image(SESSION, ["/bin/sh"], "/bin", files={"bin/busybox": busybox, **users}, links=tools),
        with_project(users),
    )
    return {image.name: image for image in found}


def with_project(files: dict[str, bytes]) -> Image:
    """A virtual environment whose packages, as the interpreter and all other programs, are mounted."""
    home = Path(sys.base_prefix) / "bin"
    packages = f"{OURS}/lib/python3.{sys.version_info.minor}/site-packages"
    command = f"#!{PYTHON}\nimport sys\nfrom hitchpost.cli.main import main\nsys.exit(main())\n"
    python = os.path.realpath(sys.executable)
    return Image(
        HITCHPOST,
        [PYTHON, "-m", "hitchpost.pod"],
        f"/{OURS}/bin:/usr/local/bin:/usr/bin:/bin",
        (*FOLDERS, "home/agent", "opt", "usr", "work"),
        files={
            **files,
            "etc/ld.so.cache": Path("/etc/ld.so.cache").read_bytes(),
            f"{OURS}/pyvenv.cfg": f"home = {home}\ninclude-system-site-packages = false\n".encode(),
            f"{OURS}/bin/hitch": command.encode(),
            f"{packages}/project.pth": f"/{OURS}/src\n/{OURS}/packages\n".encode(),
        },
        links={
            **{name: f"usr/{name}" for name in ("bin", "lib", "lib64", "sbin")},
            **{f"{OURS}/bin/{name}": python for name in ("python", "python3")},
        },
    )


def mounts() -> dict[str, str]:
    """What every container sees of the machine, by its place there."""
    packages = next(path for path in sys.path if path.startswith(sys.prefix) and path.endswith("site-packages"))
    found = {"/usr": "/usr", f"/{OURS}/src": str(ROOT / "src"), f"/{OURS}/packages": packages}
    for path in ("/etc/alternatives", "/etc/ssl"):
        if os.path.isdir(path):
            found[path] = path
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        found[sys.base_prefix] = sys.base_prefix
    return found


def base_spec(default: dict[str, Any]) -> dict[str, Any]:
    """How containerd begins the description of a container: its own default, and the mounts."""
    ours = [
        {"destination": inside, "type": "bind", "source": source, "options": ["rbind", "ro", "nosuid", "nodev"]}
        for inside, source in mounts().items()
    ]
    return {**default, "mounts": [*default["mounts"], *ours]}
