"""S6: an id or a name is looked up and never becomes a path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hitchpost.errors import NoSuchSession
from hitchpost.ops.sessions.recover import recover
from hitchpost.ops.sessions.remove import archive, remove
from hitchpost.ops.sessions.stop import stop
from hitchpost.ops.views.find import find, resolve
from tests.ground import Ground

HOSTILE = [
    "..",
    ".",
    "/",
    "../..",
    "../victim",
    "../sessions",
    "..%2Fvictim",
    "%2e%2e%2fvictim",
    ".lock",
    "./{id}",
    "{id}/",
    "{id}/runs/1",
    "../sessions/{id}",
    "{home}/victim",
    "*",
    "[a-z]*",
    "?" * 12,
    "{id}\n",
    " {id}",
    "x" * 10_000,
    "\u2025/victim",
    "٣",
]
VERBS = (("stop", "--now"), ("restart",), ("archive",), ("rm",), ("rm", "--force"))
VERBS_FOR_ONE = (("logs",), ("explain",), ("send", "text"))


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name.startswith("index."):
            continue
        stat = path.lstat()
        found[str(path)] = (stat.st_ino, stat.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found


@pytest.mark.ids("S6")
def test_S6_what_is_no_session_is_not_found_and_nothing_is_touched(ground: Ground) -> None:
    dev = ground.begin_sh("exit 3", name="dev")
    dev.ended()
    victim = ground.home / "victim"
    victim.mkdir()
    for name in ("session.json", "state.json"):
        (victim / name).write_bytes((dev.folder / name).read_bytes())
    before = everything(ground.home)
    names = [text.format(id=dev.id, home=ground.home) for text in HOSTILE]
    for verb in VERBS:
        answer = ground.hitch(*verb, "--", *names, check=3)
        assert answer.out == ""
        assert answer.err.count("no session") == len(names)
        assert "Traceback" not in answer.err
    for words in VERBS_FOR_ONE:
        answer = ground.hitch(words[0], "--", names[4], *words[1:], check=3)
        assert (answer.out, answer.err.count("no session")) == ("", 1)
    assert everything(ground.home) == before


@pytest.mark.ids("S6")
def test_S6_the_operations_look_names_up(ground: Ground) -> None:
    dev = ground.begin_sh("exit 3", name="dev")
    dev.ended()
    before = everything(ground.home)
    for text in [*HOSTILE, "a\0b", "", "\udcff"]:
        name = text.format(id=dev.id, home=ground.home)
        for deed in (resolve, find):
            with pytest.raises(NoSuchSession):
                deed(str(ground.home), name)
    assert everything(ground.home) == before


@pytest.mark.ids("S6")
@pytest.mark.parametrize("deed", [recover, stop, remove, archive])
def test_S6_operations_on_an_id_that_is_gone_say_so(ground: Ground, deed) -> None:
    dev = ground.begin_sh("exit 3")
    dev.ended()
    before = everything(ground.home)
    with pytest.raises(NoSuchSession):
        deed(str(ground.home), "nosuchid0000", actor="test")
    assert everything(ground.home) == before


@pytest.mark.ids("S6")
def test_S6_a_name_that_looks_like_a_path_is_a_label(ground: Ground) -> None:
    outside = set(os.listdir(ground.home))
    for name in ("../../etc", "/etc/passwd", "..", "a/b", ".hidden"):
        dev = ground.begin("true", name=name)
        dev.ended()
        assert find(str(ground.home), name).record.id == dev.id
        remove(str(ground.home), dev.id, actor="test")
    assert {name for name in os.listdir(ground.home) if not name.startswith("index.")} == outside | {
        "sessions",
        "numbers.json",
    }
    assert [name for name in os.listdir(ground.home / "sessions") if name != ".lock"] == []
