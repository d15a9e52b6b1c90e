"""The page's rows say what ``hitch ps`` says, after whatever has happened."""

from __future__ import annotations

import os
import signal

from tests.browser.windows import Window, expect
from tests.ground import Ground, Truth
from tests.support import eventually, halt
from tests.truth.surfaces import label_of


def test_the_rows_say_what_ps_says(ground: Ground, window: Window) -> None:
    names = ("leaves", "killed", "lost", "paused", "stopped")
    made = {name: ground.begin_sh("read code; exit $code", name=name) for name in names}

    def agree(session: Truth, wanted: str) -> None:
        row = eventually(lambda: found if label_of((found := ground.ps(session))["label"]) == wanted else None)
        expect(window.label(row["name"])).to_have_text(wanted)

    for session in made.values():
        agree(session, "running")
    ground.hitch("send", "leaves", "3")
    made["leaves"].ended()
    agree(made["leaves"], "failed: command exited with code 3")
    os.kill(made["killed"].agent_pid(), signal.SIGKILL)
    made["killed"].ended()
    agree(made["killed"], "failed: command killed by SIGKILL")
    made["lost"].kill_keeper()
    agree(made["lost"], "failed: keeper lost")
    halt(made["paused"].keeper_pid())
    agree(made["paused"], "running (keeper stopped)")
    os.kill(made["paused"].keeper_pid(), signal.SIGCONT)
    agree(made["paused"], "running")
    ground.end(made["stopped"], grace_s=0)
    window.unfold("Ended")
    agree(made["stopped"], "stopped")
    ground.end(made["paused"], grace_s=0)
