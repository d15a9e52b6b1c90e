"""Says whether the locks in ``requirements/`` still fit ``pyproject.toml``. Looks at the files only."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
ALL = ("docker", "fleet", "mcp", "tui", "dev")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")


def locked(lock: Path) -> dict[str, str]:
    """The version of each package. Raises ``SystemExit`` for one without a digest."""
    versions: dict[str, str] = {}
    for entry in lock.read_text().replace("\\\n", " ").splitlines():
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        pin = PIN.match(entry)
        if pin is None or "--hash=sha256:" not in entry:
            raise SystemExit(f"{lock.name}: expected NAME==VERSION with digests, got: {entry.split(' --hash')[0]}")
        versions[canonicalize_name(pin[1])] = pin[2]
    return versions


def complaints(project: dict[str, list[str]], locks: dict[str, dict[str, str]]) -> list[str]:
    """``project``: for each lock, the requirements that it must meet."""
    found = []
    for name, requirements in project.items():
        for requirement in map(Requirement, requirements):
            version = locks[name].get(canonicalize_name(requirement.name))
            if version is None:
                found.append(f"{name}: {requirement.name} is missing")
            elif not requirement.specifier.contains(version, prereleases=True):
                found.append(f"{name}: {requirement.name} {version} does not meet {requirement.specifier}")
    return found


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needs = {
        "base.txt": [*project["dependencies"], *extras["mcp"], *extras["tui"]],
        "fleet.txt": [*project["dependencies"], *extras["fleet"]],
        "dev.txt": [*project["dependencies"], *(each for name in ALL for each in extras[name])],
    }
    locks = {name: locked(ROOT / "requirements" / name) for name in needs}
    locked(ROOT / "requirements/pip.txt")
    found = complaints(needs, locks)
    found += [
        f"{lock}: {name} {version} is {locks['dev.txt'].get(name)} in dev.txt"
        for lock in ("base.txt", "fleet.txt")
        for name, version in locks[lock].items()
        if locks["dev.txt"].get(name) != version
    ]
    if found:
        print(*found, "Run script/lock.", sep="\n", file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
