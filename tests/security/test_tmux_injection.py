"""S7 on the tmux runtime: tmux expands formats in many places, and no text of a user may reach one of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hitchpost.ops.sessions.restart import restart
from hitchpost.runtimes.link import Link
from hitchpost.settings import Settings
from tests.ground import Ground
from tests.security.test_injection import CANARY, SHOW, hostile
from tests.support import Hitch, eventually
from tests.tmuxes import Panes

WHERE = "import json, os; here = os.stat('.'); json.dump([here.st_dev, here.st_ino, os.getcwd()], open('where', 'w'))"


@pytest.mark.ids("S7")
def test_S7_hostile_names_descriptions_and_folders_run_nothing(panes: Panes, ground: Ground) -> None:
    canary = ground.place / CANARY
    for number, text in enumerate(hostile(canary)):
        place = ground.place / f"{number} {text.replace('/', '_')}"
        place.mkdir()
        dev = panes.begin(sys.executable, "-c", WHERE, place=place, name=f"{number} {text}", description=text)
        assert panes.final(dev) == "completed"
        here = place.stat()
        dev_ino_path = json.loads((place / "where").read_text())
        assert dev_ino_path == [here.st_dev, here.st_ino, os.path.realpath(place)]
        panes.shows(dev, "[completed]")
        panes.tmux(dev, "split-window", "-d", "sleep 1000")
        panes.tmux(dev, "refresh-client", check=False)
    assert not canary.exists()
    assert not list(ground.watch.scratch.rglob(CANARY))


@pytest.mark.ids("S7")
def test_S7_hostile_arguments_and_environment_arrive_byte_for_byte(panes: Panes, ground: Ground) -> None:
    canary = ground.place / CANARY
    texts = hostile(canary)
    shown = ground.watch.scratch / "shown"
    env = {"HOSTILE": "\n".join(texts), "SHOWN": str(shown)}
    dev = panes.begin(sys.executable, "-c", SHOW, *texts, "", env=env)
    assert panes.final(dev) == "completed"
    assert json.loads(shown.read_text()) == [[*texts, ""], "\n".join(texts)]
    shown.unlink()
    restart(str(ground.home), dev.id, Settings(), caller={**Hitch.environment(), **env}, actor="test")
    assert panes.final(dev, run=2) == "completed"
    assert json.loads(shown.read_text())[0] == [*texts, ""]
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_hostile_prompts_arrive_byte_for_byte(panes: Panes, ground: Ground) -> None:
    canary = ground.place / CANARY
    dev = panes.sh("stty -echo; echo ready; cat > got")
    panes.shows(dev, "ready")
    expected = ""
    with Link.connect(str(dev.run())) as link:
        for text in hostile(canary):
            assert link.request("send", text=text)["ok"] is True
            expected += text + "\n"
    eventually(lambda: (ground.place / "got").read_text() == expected)
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_what_an_agent_writes_cannot_make_tmux_run_anything(panes: Panes, ground: Ground) -> None:
    canary = ground.place / CANARY
    script = Path(ground.place / "writes.sh")
    lines = [
        rf"printf '\033]2;#(touch {canary})\007'",
        rf"printf '\033k#(touch {canary})\033\\'",
        rf"printf '\033Ptmux;\033\033]2;#(touch {canary})\007\033\\'",
        rf"printf '\033]0;#(touch {canary})\007'",
        rf"printf '\033]7;file:///tmp/#(touch%%20{canary})\007'",
        "echo written",
        "sleep 1000",
    ]
    script.write_text("\n".join(lines))
    dev = panes.begin("sh", str(script))
    panes.shows(dev, "written")
    panes.tmux(dev, "display-message", "-p", "#{pane_title} #{window_name} #{pane_path}")
    panes.tmux(dev, "set-option", "-g", "status", "on")
    panes.tmux(dev, "list-windows", "-a")
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_a_home_with_a_hostile_name_runs_nothing(
    panes: Panes, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = ground.place / CANARY
    for number, text in enumerate(("#(touch canary)", "$(touch canary)", "a;touch canary", "%H #{pid} 'x'")):
        home = ground.home / f"{number} {text}"
        monkeypatch.setenv("HITCHPOST_HOME", str(home))
        strange = Panes(Ground(home, ground.place, ground.watch, ground.hitch))
        try:
            dev = strange.sh("echo here; read line")
            strange.shows(dev, "here")
            restart(str(home), dev.id, Settings(), caller=Hitch.environment(), actor="test")
            assert dev.state == "running"
        finally:
            strange.close()
    assert not canary.exists()
    assert not list(ground.watch.scratch.rglob("canary"))
