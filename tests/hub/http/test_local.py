"""The hub's Unix socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitchpost.hub.http.local import LocalSocket


def test_a_hub_that_has_left_makes_no_socket_in_the_place_of_the_next_one(home: Path) -> None:
    left, following = LocalSocket(str(home)), LocalSocket(str(home))
    with left.open():
        left.discard()
    with following.open():
        with pytest.raises(OSError, match="shutdown"):
            left.open()
        assert following.is_there()
