"""S7: texts that a shell, tmux or an option parser would take for a command are texts and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hitchpost.ops.sessions.create import create
from hitchpost.ops.sessions.spec import SessionSpec
from hitchpost.ops.sessions.start import start
from hitchpost.runtimes.link import Link
from hitchpost.settings import Settings
from tests.ground import Ground, Truth
from tests.support import Hitch, eventually

CANARY = "canary"


def hostile(canary: Path) -> list[str]:
    touch = f"touch {canary}"
    spaceless = f"touch${{IFS}}{canary}"
    return [
        f"$({touch})",
        f"`{touch}`",
        f"; {touch} ;",
        f"| {touch}",
        f"&& {touch} &",
        f"' ; {touch} ; '",
        f'" ; {touch} ; "',
        f"\n{touch}\n",
        f"#({touch})",
        f"fix#({spaceless})",
        f"#{{q:#({touch})}}",
        "#{pane_pid}",
        "%n%s%x{0}{name}{0.__class__}",
        "--name=other",
        "-rf",
        "\\x1b\\n\\\\",
        "$HOME ~ * ?",
        "\t tab and  spaces ",
        "ünïcödé 🎉 \u202e rtl",
    ]


SHOW = "import json, os, sys; json.dump([sys.argv[1:], os.environ.get('HOSTILE')], open(os.environ['SHOWN'], 'w'))"


@pytest.mark.ids("S7")
def test_S7_hostile_arguments_and_environment_arrive_byte_for_byte_and_run_nothing(ground: Ground) -> None:
    canary = ground.place / CANARY
    texts = hostile(canary)
    shown = ground.watch.scratch / "shown"
    env = {"HOSTILE": "\n".join(texts), "SHOWN": str(shown)}
    dev = ground.run(sys.executable, "-c", SHOW, *texts, "", env=env)
    assert dev.ended() == "completed"
    assert json.loads(shown.read_text()) == [[*texts, ""], "\n".join(texts)]
    assert json.loads((dev.folder / "session.json").read_bytes())["argv"][3:] == [*texts, ""]
    shown.unlink()
    ground.hitch("restart", dev.id, env=env)
    assert dev.ended(run=2) == "completed"
    assert json.loads(shown.read_text())[0] == [*texts, ""]
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_bytes_that_are_no_text_arrive_too(ground: Ground) -> None:
    dev = ground.run("sh", "-c", 'printf %s "$1" | od -An -tx1', "sh", "\udcff\udcfe\udc80x")
    assert dev.ended() == "completed"
    assert dev.output().split() == [b"ff", b"fe", b"80", b"78"]


@pytest.mark.ids("S7")
def test_S7_hostile_names_descriptions_and_folders_run_nothing_and_still_name_the_session(ground: Ground) -> None:
    canary = ground.place / CANARY
    texts = hostile(canary)
    for number, text in enumerate(texts):
        place = ground.place / f"{number} {text.replace('/', '_')}"
        place.mkdir()
        argv = ("sh", "-c", "pwd > here")
        spec = SessionSpec(str(place), command=argv, name=text, description=text)
        session = create(str(ground.home), spec, Settings(), actor="test").id
        start(str(ground.home), session, Settings(), caller=Hitch.environment(), actor="test")
        assert Truth(ground.home, session).ended() == "completed"
        assert (place / "here").read_text() == f"{place}\n"
    rows = ground.hitch("ps", "--json").json()
    assert [(row["name"], row["description"]) for row in rows] == [(text, text) for text in texts]
    for words in (("stop", "--", *texts), ("explain", "--", texts[0]), ("logs", "--", texts[0])):
        ground.hitch(*words)
    assert ground.hitch("archive", "--", *texts).err == ""
    ground.hitch("rm", "--", *texts)
    assert ground.hitch("ps", "--json", "--all").json() == []
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_hostile_options_of_the_command_are_texts(ground: Ground) -> None:
    canary = ground.place / CANARY
    text = f"$(touch {canary})`touch {canary}`;'\"\n#(touch {canary})"
    place = ground.place / text.replace("/", "_")
    place.mkdir()
    options = (f"--name={text}", f"--description={text}", f"--workspace={place}", f"--env=X={text}")
    row = ground.hitch("run", "--json", *options, "--", "sh", "-c", 'printf %s "$X" > x', cwd=ground.place).json()
    assert (row["name"], row["description"], row["workspace"]["path"]) == (text, text, str(place))
    assert Truth(ground.home, row["id"]).ended() == "completed"
    assert (place / "x").read_text() == text
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_a_hostile_prompt_arrives_byte_for_byte(ground: Ground) -> None:
    canary = ground.place / CANARY
    program = (
        "import sys, tty, os\ntty.setraw(0); os.write(1, b'\\x1b[?2004hready'); heard = b''\n"
        "while not heard.endswith(b'END\\x1b[201~\\r'):\n    heard += os.read(0, 9999)\n"
        "open('heard', 'wb').write(heard)"
    )
    dev = ground.begin(sys.executable, "-c", program)
    eventually(lambda: b"ready" in dev.output())
    text = "".join(hostile(canary)) + "END"
    with Link.connect(str(dev.run())) as link:
        assert link.request("send", text=text)["ok"] is True
    assert dev.ended() == "completed"
    assert (ground.place / "heard").read_bytes() == b"\x1b[200~" + text.encode() + b"\x1b[201~\r"
    assert not canary.exists()


@pytest.mark.ids("S7")
def test_S7_a_prompt_cannot_end_its_own_paste(ground: Ground) -> None:
    dev = ground.begin("sh", "-c", "printf '\\033[?2004h'; exec cat")
    eventually(lambda: b"2004h" in dev.output())
    answer = ground.hitch("send", dev.id, "innocent\x1b[201~\rtouch canary\r", check=4)
    assert "control characters" in answer.err
    ground.end(dev)
    assert b"innocent" not in dev.output()
