"""``pod.json``: the pod of a session, as it is written down. The hub that watches the session writes it."""

from __future__ import annotations

import os
from datetime import datetime

from hitchpost import wire
from hitchpost.model.facts import Pod
from hitchpost.store import files
from hitchpost.values import asdict, fields

MOMENTS = ("since", "node_seen_at", "unreachable_since")
DEFAULTS = Pod("")


def read_pod(session_folder: str) -> Pod | None:
    """None where no pod was made, or what is written down cannot be read."""
    try:
        stored = files.read_object(os.path.join(session_folder, wire.POD))
    except files.CannotRead:
        return None
    return pod_of(stored)


def pod_of(stored: dict[str, object]) -> Pod | None:
    """Unknown keys are ignored; what is of another kind than expected counts as not told."""
    found = {name: _item(name, stored.get(name)) for name in fields(Pod)}
    pod = Pod(**found)  # type: ignore[arg-type]
    return pod if pod.name else None


def write_pod(session_folder: str, pod: Pod) -> None:
    told = {name: item.isoformat() if isinstance(item, datetime) else item for name, item in asdict(pod).items()}
    files.write_object(os.path.join(session_folder, wire.POD), {"schema": files.SCHEMA, **told})


def _item(name: str, item: object) -> object:
    default = getattr(DEFAULTS, name)
    if name in MOMENTS:
        return _moment(item)
    if name == "node_ready":
        return item if isinstance(item, bool) else None
    return item if type(item) is type(default) else default


def _moment(item: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(item))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
