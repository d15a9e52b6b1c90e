"""Asks OSV about every locked package: ``script/audit``. ``OSV_URL`` names another service that answers alike."""

from __future__ import annotations

import http.client
import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from script.lock import locked

ROOT = Path(__file__).parents[1]
SERVICE = "https://api.osv.dev"
ACCEPTED: dict[str, str] = {}
"""Advisories that do not concern us: id and why."""
AT_ONCE = 500
TIMEOUT_S = 20


class Package(NamedTuple):
    ecosystem: str
    name: str
    version: str


class NotReached(Exception):
    """Raised when the service does not answer as one does."""


def packages() -> list[Package]:
    python = {
        Package("PyPI", name, version)
        for lock in sorted(ROOT.glob("requirements/*.txt"))
        for name, version in locked(lock).items()
    }
    node = {package for folder in ("ui", "docker") for package in node_packages(ROOT / folder / "package-lock.json")}
    return sorted(python | node)


def node_packages(lock: Path) -> Iterator[Package]:
    for place, entry in json.loads(lock.read_text())["packages"].items():
        name = entry.get("name") or place.rpartition("node_modules/")[2]
        if place and "version" in entry:
            yield Package("npm", name, entry["version"])


def advisories(service: str, asked: Sequence[Package]) -> dict[Package, list[str]]:
    """The ids of what is known of each package that anything is known of. Raises ``NotReached``."""
    queries = [{"package": {"ecosystem": p.ecosystem, "name": p.name}, "version": p.version} for p in asked]
    request = urllib.request.Request(
        f"{service}/v1/querybatch", json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            results = json.load(answer)["results"]
        known = {
            package: [found["id"] for found in result.get("vulns", [])]
            for package, result in zip(asked, results, strict=True)
        }
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotReached(str(error)) from error
    return {package: ids for package, ids in known.items() if ids}


def main() -> int:
    service = os.environ.get("OSV_URL", SERVICE)
    everything = packages()
    found: dict[Package, list[str]] = {}
    try:
        for start in range(0, len(everything), AT_ONCE):
            found |= advisories(service, everything[start : start + AT_ONCE])
    except NotReached as error:
        print(f"NOT AUDITED: {service} cannot be asked about {len(everything)} packages: {error}")
        return 0
    bad = [(package, name) for package, names in found.items() for name in names if name not in ACCEPTED]
    for package, name in bad:
        print(
            f"{package.name} {package.version} ({package.ecosystem}): {name}, see https://osv.dev/vulnerability/{name}"
        )
    print(f"{len(everything)} packages audited, {len(bad)} advisories")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
