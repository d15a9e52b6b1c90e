"""Which ``.hitchpost.toml`` a person has agreed to: by repository, and by the content of it and of what it names."""

from __future__ import annotations

import os

from hitchpost.store import files, locks

TRUST, LOCK = "trust.json", "trust.lock"


def digest(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def is_trusted(home: str, repo: str, content: bytes) -> bool:
    """Raises ``Unreadable`` when the file of trust is broken: nothing is trusted then."""
    return digest(content) in _read(home).get(repo, [])


def trust(home: str, repo: str, content: bytes) -> None:
    """Remember that this content may run commands in this repository. Durable when it returns."""
    with locks.Lock(os.path.join(home, LOCK)):
        known = _read(home)
        known[repo] = sorted({*known.get(repo, []), digest(content)})
        files.write_object(os.path.join(home, TRUST), {"schema": files.SCHEMA, "trusted": known})


def _read(home: str) -> dict[str, list[str]]:
    path = os.path.join(home, TRUST)
    try:
        known = files.read_object(path).get("trusted")
    except FileNotFoundError:
        return {}
    if not isinstance(known, dict) or not all(isinstance(item, list) for item in known.values()):
        raise files.Unreadable(path, "expected trusted to be a table of lists")
    return {str(repo): [str(item) for item in digests] for repo, digests in known.items()}
