"""Older files become the present schema. Steps are numbered by the schema that they lead from."""

from __future__ import annotations

from hitchpost.model.record import FORMER_WORDS
from hitchpost.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, object]

_MERGED_NAMES = {"status": "state", "status_changed_at": "state_changed_at"}


def _state_from_0(value: Object) -> Object:
    """The first form: no schema, no run; some called the state ``status``."""
    moved = {_MERGED_NAMES.get(key, key): item for key, item in value.items()}
    return {"run": 1, "workspace_id": "", **moved, "schema": 1}


def _record_from_0(value: Object) -> Object:
    """The five-state model: ``completed`` and ``cancelled`` are no records' words any more."""
    word = str(value.get("record", value.get("status", "active")))
    rest = {key: item for key, item in value.items() if key != "status"}
    return {**rest, "record": FORMER_WORDS.get(word, word), "schema": 1}


STATE_STEPS: dict[int, Callable[[Object], Object]] = {0: _state_from_0}
RECORD_STEPS: dict[int, Callable[[Object], Object]] = {0: _record_from_0}


def migrated(value: Object, steps: dict[int, Callable[[Object], Object]]) -> Object:
    """``value`` in the present schema; the same object when it already is."""
    while (schema := int(str(value.get("schema", 0)))) < files.SCHEMA:
        value = steps[schema](value)
    return value
