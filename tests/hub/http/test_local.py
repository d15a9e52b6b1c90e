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


def test_hubs_whose_homes_have_changed_places_leave_each_other_their_sockets(home: Path) -> None:
    away = home.with_name("away")
    moved = LocalSocket(str(home))
    with moved.open():
        home.rename(away)
        home.mkdir()
        following = LocalSocket(str(home))
        with following.open():
            with pytest.raises(OSError, match="moved away"):
                moved.open()
            moved.discard()
            assert following.is_there()
        home.rename(home.with_name("gone"))
        away.rename(home)
        assert moved.is_there()
        with pytest.raises(OSError, match="moved away"):
            following.open()
