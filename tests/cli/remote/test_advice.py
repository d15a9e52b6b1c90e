"""Advice that is given from afar can be followed from afar: it names the context, unless every command is for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from hitchpost.cli.remote.advice import elsewhere
from tests.cli.advice import proposed
from tests.cli.attaching import DETACH, Terminals
from tests.cli.live import Live, live
from tests.cli.remote.far import NAME, Far
from tests.cli.remote.test_attach import FarTerminals, received, tty
from tests.ground import Ground
from tests.reaching import certificate
from tests.support import eventually

__all__ = ["tty"]


@pytest.fixture
def there(far: Far, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[Live]]:
    """A command for the hub, on a terminal of the machine that is far from it."""

    @contextmanager
    def begin(*words: str) -> Iterator[Live]:
        with monkeypatch.context() as patch:
            patch.setenv("HITCHPOST_HOME", str(far.home))
            with live("--context", NAME, *words, terminal=(120, 30)) as made:
                yield made

    return begin


def for_team(said: str) -> str:
    """In one line, without the context, which each command has that could be for this machine."""
    whole = " ".join(said.split())
    assert f"hitch --context {NAME} " in whole, whole
    return whole.replace(f" --context {NAME}", "")


def test_what_is_said_of_contexts_can_be_followed(far: Far, ground: Ground) -> None:
    ground.begin_sh("exec sleep 1000", name="dev")
    said = far.add("other", far.hub.token()).err
    assert said.startswith("hitch --context other ps lists its sessions, ")
    for words in (("ps", "--context", "other"), ("ps",)):
        assert "dev" in ground.hitch(*words, env=far.env).out
        ground.hitch(*proposed(said, "hitch context use {} makes it the usual one", 4)[1:], env=far.env)
    ground.hitch("context", "use", "local")
    said = far.add("other", far.hub.token(), check=5).err
    ground.hitch(*proposed(said, "hitch context rm {} forgets it", 4)[1:])
    far.add("other", far.hub.token())
    for wrong in ("ps --context nobody", "ps --context", "top --context nobody"):
        said = ground.hitch(*wrong.split(), check=False).err
        assert far.hub.url in ground.hitch(*proposed(said, "hitch context ls lists them", 3)[1:]).out
    said = ground.hitch("ps", check=3, env={"HITCHPOST_CONTEXT": "nobody"}).err
    assert said.startswith("hitch: no context 'nobody', which HITCHPOST_CONTEXT names; ")


def test_what_is_said_of_a_hub_that_does_not_answer_can_be_followed(far: Far, ground: Ground) -> None:
    port = int(far.hub.url.rpartition(":")[2])
    far.hub.stop()
    said = far("ps", check=1).err
    again = proposed(said, "hitch context show {} tries it again", 4)[1:]
    assert "connection refused; hitch context show team" in ground.hitch(*again, check=1).out
    said = far.add("other", "x", check=1).err
    assert said.endswith("connection refused; nothing was added; check the URL, and that the hub listens there\n")
    cert, key = certificate(ground.place.parent, "renewed")
    far.hub.start(host="127.0.0.2", port=port, reach=(cert, key))
    said = far("ps", check=1).err
    assert "its certificate is not trusted (self-signed certificate); " in said
    assert "nothing was added; name the authority that has signed it with --ca-file" in far.add("o", "x", check=1).err
    ground.hitch(*proposed(said, "hitch context rm {} forgets it", 4)[1:])
    clause = "hitch context add {} {} --ca-file FILE adds it with the authority that has signed it"
    assert proposed(said, "hitch context add {} {} --ca-file FILE adds it with the authority that has signed it", 5)
    words = [word.replace("FILE", cert) for word in proposed(said, clause, 7)[1:]]
    ground.hitch(*words, "--token-file", "-", stdin=f"{far.hub.token()}\n")
    assert "you are test there" in ground.hitch(*again).out


def test_what_is_said_of_sessions_elsewhere_can_be_followed(
    far: Far, ground: Ground, there: Callable[..., AbstractContextManager[Live]]
) -> None:
    with there("run", "--folder", str(ground.place), "--name", "dev", "--", "sh", "-c", "echo ready; exec cat") as made:
        assert made.code() == 0
        said = for_team(made.out().decode())
    assert "dev" in far(*proposed(said, "hitch ps shows who needs you", 2)[1:]).out
    with there(*proposed(said, "hitch attach {} enters its terminal", 3)[1:]) as visit:
        visit.shows(b"ready")
        visit.press(DETACH)
        said = for_team(visit.shows(b"comes back]").decode())
    with there(*proposed(said, "hitch attach {} comes back", 3)[1:]) as visit:
        visit.shows(b"ready")
        visit.press(DETACH)
        assert visit.code() == 0
    said = for_team(far("top", check=4).err)
    with there(*proposed(said, "hitch ps --watch", 3)[1:]) as watched:
        watched.shows(b"dev")
    said = for_team(far("attach", "dev", check=2).err)
    with there(*proposed(said, "hitch logs -f {} follows without one", 4)[1:]) as followed:
        followed.shows(b"ready")
        far("stop", "dev")
        assert followed.code() == 0
    said = for_team(far("attach", "dev", check=4).err)
    assert far(*proposed(said, "hitch logs {} shows its output", 3)[1:]).out == "ready\n"
    assert "running (run 2)" in far(*proposed(said, "hitch restart {} starts it again", 3)[1:]).out


def test_a_recording_is_brought_here_for_what_reads_it_here(far: Far, ground: Ground, tmp_path: Path) -> None:
    dev = ground.begin_sh("echo ready; exit 0", name="dev")
    dev.ended()
    said = for_team(far("rules", "test", "dev", check=4).err)
    words = proposed(said, "hitch replay SESSION --export FILE brings a recording here", 5)[1:]
    file = str(tmp_path / "dev.cast")
    far(*(word.replace("SESSION", "dev").replace("FILE", file) for word in words))
    assert "--context local is this machine" in far("rules", "test", file, check=4).err
    assert far("rules", "test", file, "--agent", "claude", "--context", "local", check=False).code in (0, 1)


FLOODS = """
import os, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
for _ in range(4400): os.write(1, b"x" * 4095 + b"\\n")
print("flood", "over", flush=True); time.sleep(1000)
"""


def test_output_that_was_too_much_for_the_connection_is_in_the_log(
    far: Far, ground: Ground, tty: FarTerminals, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    with far.through_network() as wire:
        dev = ground.hitch("run", "--json", "--name", "dev", "--", sys.executable, "-c", FLOODS, str(go)).json()["id"]
        me = Terminals.__call__(tty, "--context", NAME, "attach", "dev", cols=120, **far.env)
        me.shows("ready")
        wire.cut()
        me.until(lambda: b"trying again" in received(me), "that it is told")
        go.touch()
        eventually(lambda: "flood over" in far.ground.hitch("logs", "--tail", "1", dev).out, what="the flood")
        wire.mend()
        me.shows("flood over")
        told = re.search(rb"\[hitch: (\d{8}) bytes of output[^]]*\]", received(me))
        assert told is not None
        said = for_team(told[0].decode())
        shown = far(*proposed(said, "hitch logs {} has them", 3)[1:]).out
        assert shown.count("x") == 4400 * 4095
        me.type(DETACH)
        assert me.ends() == 0


@pytest.mark.parametrize(
    ("usual", "text", "expected"),
    [
        ("", "hitch stop dev ends it", "hitch --context team stop dev ends it"),
        ("", "hitch ps, or hitch context ls", "hitch --context team ps, or hitch context ls"),
        ("", "hitch stopped", "hitch stopped"),
        ("other", "hitch ps", "hitch --context team ps"),
        ("team", "hitch stop dev ends it", "hitch stop dev ends it"),
    ],
)
def test_a_command_names_the_context_unless_every_command_is_for_it(
    monkeypatch: pytest.MonkeyPatch, ground: Ground, usual: str, text: str, expected: str
) -> None:
    monkeypatch.setenv("HITCHPOST_CONTEXT", usual)
    assert elsewhere(text, "team") == expected
