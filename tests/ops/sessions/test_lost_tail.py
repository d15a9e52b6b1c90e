"""What a pod has written last may be lost with it: every reader is told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost import wire
from hitchpost.ops.sessions.lost_tail import note_lost_tail
from hitchpost.terminal import output
from hitchpost.terminal.recording import MARK, events


@pytest.mark.parametrize("torn", [b"", b"o123"])
def test_an_end_that_nobody_saw_is_a_gap_once(tmp_path: Path, torn: bytes) -> None:
    folder = tmp_path / wire.OUTPUT
    folder.mkdir()
    (folder / wire.segment_name(0)).write_bytes(b"hello\r\n")
    (folder / wire.TIMES).write_bytes(wire.time_record(wire.AT_OFFSET, 1_000_000, 7) + torn)
    assert note_lost_tail(str(tmp_path))
    assert not note_lost_tail(str(tmp_path))
    assert (output.bounds(str(folder))[1], output.told_end(str(folder))) == (7, 8)
    gaps = [event.data for event in events(str(folder)) if event.code == MARK]
    assert gaps == ["some output is missing here (amount unknown)"]


def test_an_end_that_was_seen_is_none(tmp_path: Path) -> None:
    (tmp_path / wire.OUTPUT).mkdir()
    (tmp_path / wire.EXIT).write_text("{}")
    assert not note_lost_tail(str(tmp_path))
    assert not (tmp_path / wire.OUTPUT / wire.TIMES).exists()
