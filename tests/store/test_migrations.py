from __future__ import annotations

import json
from pathlib import Path

import pytest

from hitchpost.model import run as runs
from hitchpost.store import records
from hitchpost.store.locks import SessionLock
from hitchpost.store.session import Session
from tests.store.made import session, tree

SEED = {
    "state": "running",
    "state_changed_at": "2025-06-24T10:00:00.5Z",
    "updated_by": 4711,
    "session_id": "",
    "workspace_id": "workspace-fix-auth",
    "last_activity_hash": 3735928559,
    "last_activity_at": "2025-06-24T10:05:00Z",
    "last_checked_at": "2025-06-24T10:05:01Z",
}
"""ADR 31's own file: without schema and run."""

MERGED = {"status": SEED["state"], "status_changed_at": SEED["state_changed_at"]} | {
    key: item for key, item in SEED.items() if key not in ("state", "state_changed_at")
}
"""The same by the names that the merged version of the document has."""


def old_state(home: Path, value: dict[str, object]) -> Path:
    folder = session(home, runs.RUNNING)
    (folder / "state.json").write_text(json.dumps(value | {"session_id": folder.name}))
    return folder


@pytest.mark.ids("F34", "A31-15")
@pytest.mark.parametrize("value", [SEED, MERGED], ids=["seed", "merged"])
def test_the_seed_s_own_file_is_read_as_run_1_and_reading_writes_nothing(home: Path, value: dict[str, object]):
    folder = old_state(home, value)
    before = tree(home)
    state = Session(str(folder), actor="test").read()
    assert (state.run, state.state, state.updated_by, state.workspace_id) == (1, "running", 4711, "workspace-fix-auth")
    assert (state.last_activity_hash, state.state_changed_at) == (3735928559, "2025-06-24T10:00:00.5Z")
    assert tree(home) == before


@pytest.mark.ids("F34", "A31-15")
@pytest.mark.parametrize("value", [SEED, MERGED], ids=["seed", "merged"])
def test_the_seed_s_own_file_is_migrated_by_the_first_change(home: Path, value: dict[str, object]):
    folder = old_state(home, value)
    Session(str(folder), actor="test").transition(runs.STOPPING, run=1)
    written = json.loads((folder / "state.json").read_text())
    assert written == SEED | {
        "schema": 1,
        "run": 1,
        "state": "stopping",
        "session_id": folder.name,
        "state_changed_at": written["state_changed_at"],
        "updated_by": written["updated_by"],
    }


@pytest.mark.ids("F34", "A31-15")
def test_recording_activity_migrates_too(home: Path):
    folder = old_state(home, MERGED)
    Session(str(folder), actor="test").record_activity(7, "2026-01-01T00:00:00Z", run=1)
    written = json.loads((folder / "state.json").read_text())
    assert (written["schema"], written["run"], written["state"], written["last_activity_hash"]) == (1, 1, "running", 7)
    assert "status" not in written


@pytest.mark.ids("F34", "A31-15")
def test_the_next_run_of_an_old_file_is_run_2_and_keeps_the_old_one_migrated(home: Path):
    folder = old_state(home, MERGED | {"status": "completed"})
    with SessionLock(str(folder)):
        assert Session(str(folder), actor="test").next_run().run == 2
    kept = json.loads((folder / "runs" / "1" / "state.json").read_text())
    assert (kept["schema"], kept["run"], kept["state"]) == (1, 1, "completed")


@pytest.mark.ids("F34", "D-7")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("completed", "active"),
        ("cancelled", "archived"),
        ("active", "active"),
        ("suspended", "suspended"),
        ("error", "error"),
    ],
)
def test_old_records_become_new_ones_in_one_step(home: Path, old: str, new: str):
    folder = session(home)
    value = json.loads((folder / "session.json").read_text())
    del value["schema"], value["record"]
    (folder / "session.json").write_text(json.dumps(value | {"status": old}))
    record = records.read(str(folder))
    assert record.record == new
    Session(str(folder), actor="test").save(record)
    written = json.loads((folder / "session.json").read_text())
    assert (written["schema"], written["record"]) == (1, new)
    assert "status" not in written
