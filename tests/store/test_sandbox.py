from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost import lightjson
from hitchpost.store import files, records, sandbox
from hitchpost.store.records import Record
from hitchpost.store.sandbox import MountSource, StoredSandbox
from hitchpost.store.session import Session
from hitchpost.values import asdict, replace

SOURCE = MountSource("/src/shop", "/mnt/shop", 1, 2, ":/shop:ro")
STORED = StoredSandbox("agent:1", ("/src/shop:/shop:ro",), "none", 1 << 30, 1.5, None, (SOURCE,), ("TOKEN",), True)


def test_what_is_written_down_about_a_container_is_read_again(tmp_path: Path):
    folder = tmp_path / "k3v9q0x2m7ab"
    folder.mkdir()
    record = replace(records.NOBODY, id=folder.name, argv=("sh",), runtime="docker", sandbox=STORED)
    Session(str(folder), actor="test").save(record)
    assert records.read(str(folder)) == record


def test_an_older_record_has_no_sources_and_an_unknown_key_is_ignored():
    plain = lightjson.loads(lightjson.dumps(asdict(STORED)))
    assert isinstance(plain, dict)
    del plain["sources"]
    assert sandbox.from_json({**plain, "colour": "red"}) == replace(STORED, sources=None)
    assert sandbox.from_json({}) == StoredSandbox()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"image": 1}, "expected sandbox.image to be str, but got 1"),
        ({"memory_bytes": True}, "expected sandbox.memory_bytes to be int | None, but got True"),
        ({"sources": [{"given": "/src"}]}, "expected sandbox.sources to be given, path, dev, ino, target"),
        ({"sources": ["/src"]}, "expected sandbox.sources to be given, path, dev, ino, target"),
    ],
)
def test_a_record_whose_container_makes_no_sense_is_unreadable(tmp_path: Path, wrong: dict[str, object], why: str):
    folder = tmp_path / "k3v9q0x2m7ab"
    folder.mkdir()
    record: Record = replace(records.NOBODY, id=folder.name, argv=("sh",))
    files.write_object(str(folder / records.RECORD), {"schema": 1, **asdict(record), "sandbox": wrong})
    with pytest.raises(files.Unreadable) as caught:
        records.read(str(folder))
    assert why in str(caught.value)
