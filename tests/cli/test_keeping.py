"""``hitch unarchive``, ``pin`` and ``snooze``: what a person keeps, and where it stands."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.ground import Ground
from tests.hubs import HubProcess


def test_an_archived_session_comes_back_suspended_and_runs_again(ground: Ground) -> None:
    session = ground.begin_sh("echo run $HITCHPOST_RUN", name="dev")
    session.ended()
    ground.hitch("archive", "dev")
    assert ground.hitch("ps").out.count("dev") == 0
    said = ground.hitch("unarchive", "1").out
    assert said == "dev: brought back; hitch resume dev starts it again\n"
    assert ground.ps(session)["record"] == "suspended"
    last = [line for line in session.story() if line["event"] == "record"][-1]
    assert (last["from"], last["to"], last["reason"]) == ("archived", "suspended", "unarchived by the user")
    assert ground.hitch("unarchive", "dev", check=4).err.startswith("hitch: dev is suspended, not archived")
    ground.hitch("resume", "dev")
    session.ended(2)
    assert ground.ps(session)["record"] == "active"


def test_a_name_that_another_has_by_now_is_not_taken_away(ground: Ground) -> None:
    old = ground.begin_sh("true", name="dev")
    old.ended()
    ground.hitch("archive", "dev")
    new = ground.begin_sh("true", name="dev")
    new.ended()
    assert ground.hitch("unarchive", old.id).out.startswith("dev: brought back as dev-2; ")
    found = {row["id"]: (row["name"], row["index"]) for row in ground.hitch("ps", "--json").json()}
    assert found == {old.id: ("dev-2", 1), new.id: ("dev", 2)}
    (old.folder / "session.json").write_bytes(b"")
    assert ground.ps(old)["name"] == "dev-2", "the story has it, too"
    assert "problem" not in ground.hitch("doctor", check=False).out.partition("index")[2].partition("\n")[0]


def test_the_hub_brings_an_archived_session_back(ground: Ground, hub: HubProcess) -> None:
    session = ground.begin_sh("true", name="dev")
    session.ended()
    path = f"/api/sessions/{session.id}"
    assert hub.ask("POST", f"{path}/archive")["actions"] == ["unarchive", "delete"]
    back = hub.ask("POST", f"{path}/unarchive")
    assert (back["record"], back["section"], back["name"]) == ("suspended", "ended", "dev")


def test_pin_and_snooze(ground: Ground) -> None:
    session = ground.begin_sh("exit 3", name="dev")
    session.ended()
    assert ground.hitch("pin", "dev").out == "dev: pinned\n"
    assert ground.ps(session)["pinned"] is True
    assert ground.hitch("pin", "--off", "dev").out == "dev: not pinned\n"
    assert ground.ps(session)["section"] == "needs-you"
    assert ground.hitch("snooze", "dev", "1h").out == "dev: snoozed for 1h 0m\n"
    assert ground.ps(session)["section"] == "quiet"
    before = datetime.now().astimezone()
    assert ground.hitch("snooze", "dev", "tomorrow").out.startswith("dev: snoozed for ")
    until = datetime.fromisoformat(ground.ps(session)["snoozed_until"]).astimezone()
    mornings = [(day + timedelta(days=1)).strftime("%F 09:00") for day in (before, datetime.now().astimezone())]
    assert until.strftime("%F %H:%M") in mornings
    assert ground.hitch("snooze", "dev", "off").out == "dev: not snoozed\n"
    assert ground.ps(session)["section"] == "needs-you"
    assert "expected a time such as 30m, 1h or 2d" in ground.hitch("snooze", "dev", "soon", check=2).err


def test_status_counts_who_needs_you(ground: Ground) -> None:
    assert "need" not in ground.hitch("status").out
    ground.begin_sh("exit 3", name="one").ended()
    assert "Sessions: 1 needs you (one)\n" in ground.hitch("status").out
    for name in ("two", "three", "four"):
        ground.begin_sh("exit 3", name=name).ended()
    assert "Sessions: 4 need you (" in ground.hitch("status").out
