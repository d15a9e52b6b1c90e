from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from hitchpost.errors import AmbiguousSession, NoSuchSession
from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.remove import archive
from hitchpost.ops.sessions.restore import bring_back_of
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.views.find import find, resolve
from hitchpost.ops.views.observe import observe
from hitchpost.settings import Settings
from tests.ground import Ground


@pytest.fixture
def make(ground: Ground) -> Callable[[str, str], str]:
    def make(name: str, id: str) -> str:
        spec = SessionSpec(str(ground.place), command=("x",), name=name)
        return create(str(ground.home), spec, Settings(), new_id=lambda: id, actor="test").id

    return make


def test_a_session_is_found_by_id_then_name_then_number_then_beginning(
    ground: Ground, make: Callable[[str, str], str]
) -> None:
    home = str(ground.home)
    make("one", "aaaaaaaaaaaa")
    make("bbbb", "aabbbbbbbbbb")
    make("aaaaaaaaaaaa", "bbbbcccccccc")
    make("2b", "222222222222")
    assert resolve(home, "aaaaaaaaaaaa") == "aaaaaaaaaaaa", "the id wins over a name"
    assert resolve(home, "bbbb") == "aabbbbbbbbbb", "the name wins over the beginning of an id"
    assert resolve(home, "2") == "aabbbbbbbbbb", "the number wins over the beginning of an id"
    assert resolve(home, "22") == "222222222222"
    assert resolve(home, "bbbbc") == "bbbbcccccccc"
    assert find(home, "one").record.index == 1


def test_a_beginning_that_fits_several_says_which(ground: Ground, make: Callable[[str, str], str]) -> None:
    make("one", "aaaaaaaaaaaa")
    make("two", "aaabbbbbbbbb")
    with pytest.raises(AmbiguousSession, match="'aaa' matches 2 sessions: aaaaaaaaaaaa, aaabbbbbbbbb"):
        resolve(str(ground.home), "aaa")
    assert resolve(str(ground.home), "aaab") == "aaabbbbbbbbb"


@pytest.mark.parametrize("wanted", ["", "nobody", "9", "-1", "0", "٣", "1e0", "On", "one "])
def test_what_fits_none_is_told(ground: Ground, make: Callable[[str, str], str], wanted: str) -> None:
    make("one", "aaaaaaaaaaaa")
    with pytest.raises(NoSuchSession) as caught:
        resolve(str(ground.home), wanted)
    assert caught.value.exit_code == 3


def test_a_live_name_wins_over_an_archived_one(ground: Ground, make: Callable[[str, str], str]) -> None:
    old = make("one", "aaaaaaaaaaaa")
    archive(str(ground.home), old, actor="test")
    assert resolve(str(ground.home), "one") == old
    new = make("one", "bbbbbbbbbbbb")
    assert resolve(str(ground.home), "one") == new
    assert [resolve(str(ground.home), number) for number in ("1", "2")] == [old, new]
    assert resolve(str(ground.home), old) == old


def test_one_that_was_removed_in_this_moment_is_no_session(ground: Ground, make: Callable[[str, str], str]) -> None:
    home = str(ground.home)
    session = make("one", "aaaaaaaaaaaa")
    shutil.rmtree(ground.home / "sessions" / session)
    with pytest.raises(NoSuchSession, match=session):
        observe(home, session)
    with pytest.raises(NoSuchSession, match=session):
        bring_back_of(home, session, actor="test")
