from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.store import quarantine
from tests.store.made import session


@pytest.mark.ids("F36")
def test_what_is_put_away_is_kept_whole_and_named_after_its_session(home: Path):
    folder = session(home)
    (folder / "state.json").write_bytes(b"broken")
    target = quarantine.put_away(str(folder), "state.json")
    assert target
    assert Path(target).read_bytes() == b"broken"
    assert Path(target).parent == home / "quarantine"
    assert Path(target).name.startswith(f"{folder.name}.state.json.")
    assert not (folder / "state.json").exists()
    assert quarantine.contents(str(home)) == [Path(target).name]


@pytest.mark.ids("F36")
def test_what_is_put_away_again_and_again_overwrites_nothing(home: Path):
    folder = session(home)
    for number in range(100):
        (folder / "state.json").write_text(str(number))
        quarantine.put_away(str(folder), "state.json")
    kept = sorted(int(path.read_text()) for path in (home / "quarantine").iterdir())
    assert kept == list(range(100))


def test_what_is_not_there_is_not_put_away(home: Path):
    assert quarantine.put_away(str(session(home)), "nothing") is None


def test_a_home_without_a_quarantine_has_an_empty_one(home: Path):
    assert quarantine.contents(str(home)) == []
