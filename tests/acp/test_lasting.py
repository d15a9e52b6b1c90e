"""Sessions over ACP that last: reaped, suspended, handed over, and at a usage limit, with a scripted agent."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hitchpost.errors import KeeperSilent, Refused
from hitchpost.model.headline import NOT_KNOWN
from hitchpost.model.limits import TELLING_S
from hitchpost.ops.sessions.go_on import go_on
from hitchpost.ops.sessions.send import Unclear
from hitchpost.ops.views import outcome
from hitchpost.ops.views.find import find
from hitchpost.ops.views.moments import utc_text
from hitchpost.ops.views.outcome import wait_for_outcome
from hitchpost.ops.views.wait import TimedOut
from hitchpost.runtimes.link import Link
from hitchpost.store.session import Session
from hitchpost.values import replace
from tests.acp.sessions import begin
from tests.acp.test_sessions import becomes, last_said
from tests.cli.test_completion import offered
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually, halt


def prompts(ground: Ground) -> list[str]:
    """What the agent has got in its only conversation."""
    (memory,) = Path(ground.place / "remembered").iterdir()
    return memory.read_text().splitlines()


@pytest.mark.ids("D-3", "D-8", "D-9", "X5")
def test_what_was_reaped_or_suspended_goes_on_with_its_conversation(ground: Ground, hub: HubProcess) -> None:
    dev = begin(ground, "dev", "--prompt", "first")
    becomes(ground, dev, "done")
    hub.stop()
    ground.configure("reap_idle_minutes = 0.01\nreap_every_minutes = 0.002")
    hub.start()
    assert (dev.ended(), dev.exit()["intent"]) == ("stopped", "reaper")
    hub.stop()
    ground.configure('on_shutdown = "suspend"')
    hub.start()
    receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "second"})
    assert (receipt["started"], receipt["proof"]) == (True, "session/prompt")
    becomes(ground, dev, "done")

    # in the middle of a turn
    ground.hitch("send", "dev", "wait for me")
    eventually(lambda: last_said(dev) == "I am waiting", what="the turn")
    assert hub.stop() == 0
    assert (dev.ended(2), dev.exit(2)["intent"]) == ("stopped", "shutdown")
    shown = ground.ps(dev)
    assert (shown["record"], shown["supports_resume"]) == ("suspended", True)
    assert "hitch resume dev" in ground.hitch("send", "dev", "not yet", check=4).err
    hub.start()
    again = hub.ask("POST", "/api/sessions/dev/resume")
    assert (again["status"], again["resumed"]) == ("active", True)
    ground.hitch("send", "--wait", "dev", "third")

    # the agent and its turn do not need the hub
    ground.hitch("send", "dev", "wait once more")
    eventually(lambda: last_said(dev) == "I am waiting", what="the turn")
    hub.kill()
    assert becomes(ground, dev, "working")["state"] == "running"
    hub.start()
    assert hub.ask("GET", "/api/sessions/dev")["attention"] == "working"
    assert prompts(ground) == ["first", "second", "wait for me", "third", "wait once more"]

    # suspended once more, and resumed by the next prompt that asks for it
    assert hub.stop() == 0
    assert ground.ps(dev)["record"] == "suspended"
    told = ground.hitch("send", "--resume", "--wait", "--json", "dev", "fourth").json()
    assert (told["started"], told["proof"], told["session"]["record"]) == (True, "session/prompt", "active")
    ground.hitch("stop", "dev")
    hub.start()
    receipt = hub.ask("POST", "/api/sessions/dev/prompt", {"text": "fifth", "resume": True})
    assert (receipt["started"], receipt["proof"]) == (True, "session/prompt")
    eventually(lambda: prompts(ground)[-2:] == ["fourth", "fifth"], what="the agent to have read it")
    ground.hitch("stop", "dev")


def test_a_session_is_handed_over_to_an_agent_that_shares_its_conversations(ground: Ground, hub: HubProcess) -> None:
    dev = begin(ground)
    ground.hitch("stop", "dev")
    refused = ground.hitch("resume", "dev", "--agent", "scripted-twin", check=4).err
    assert "dev has no conversation that could be handed over to Twin" in refused
    ground.hitch("resume", "dev")
    ground.hitch("send", "--wait", "dev", "the word is hay")
    assert "hitch stop dev" in ground.hitch("resume", "dev", "--agent", "scripted-twin", check=4).err
    ground.hitch("stop", "dev")
    refused = ground.hitch("resume", "dev", "--agent", "claude", check=4).err
    assert "Claude Code cannot go on with a conversation of Scripted" in refused
    assert "scripted-twin" in refused
    assert "unknown agent" in ground.hitch("resume", "dev", "--agent", "nobody", check=2).err
    assert ground.ps(dev)["agent"] == "scripted-acp"

    assert offered(ground.hitch, "bash", "hitch resume dev --agent s") == ["scripted-twin"]
    told = ground.hitch("resume", "dev", "--agent", "scripted-twin")
    assert "handed over from Scripted to Twin" in told.err
    assert "the same conversation" in told.out
    assert ground.ps(dev)["agent"] == "scripted-twin"
    ground.hitch("send", "--wait", "dev", "remember")
    assert last_said(dev) == "the word is hay "
    ground.hitch("stop", "dev")

    # one that cannot load it says so, and without a prompt to it nothing is lost
    (memory,) = Path(ground.place / "remembered").iterdir()
    put_aside = memory.rename(memory.with_name("put-aside"))
    told = ground.hitch("resume", "dev")
    another = "its conversation cannot be resumed: no such conversation; it begins another one"
    assert (another in told.err, "goes on" in told.err) == (True, False)
    assert "a new conversation" in told.out
    ground.hitch("stop", "dev")
    put_aside.rename(memory)
    again = hub.ask("POST", "/api/sessions/dev/resume", {"agent": "scripted-acp"})
    assert (again["resumed"], again["session"]["agent"]) == (True, "scripted-acp")
    ground.hitch("send", "--wait", "dev", "remember")
    assert last_said(dev) == "the word is hay remember "
    reasons = [line["reason"] for line in dev.story() if line["event"] == "agent"]
    assert reasons == [
        "handed over from scripted-acp to scripted-twin",
        "handed over from scripted-twin to scripted-acp",
    ]
    ground.hitch("stop", "dev")


def test_a_session_goes_on_once_when_a_usage_limit_ends_and_a_person_can_be_faster(
    ground: Ground, hub: HubProcess
) -> None:
    ground.configure('limit_prompt = "go on"')
    dev = begin(ground, "dev", "--when-limit", "wait")
    ground.hitch("send", "dev", "limit in 1 hour")
    shown = becomes(ground, dev, "error")
    assert shown["detail"].endswith("the hub goes on then")
    assert (shown["headline"], shown["section"]) == ("Usage limit", "quiet")
    assert "1 hour" in shown["report"]["until"]
    told = ground.hitch("usage")
    assert "dev (scripted-acp) is at a usage limit" in told.out
    for usage in (ground.hitch("usage", "--json").json(), hub.ask("GET", "/api/usage")):
        (limit,) = usage["limits"]
        assert (limit["session"], limit["ends_at"]) == (dev.id, shown["report"]["ends_at"])
    ground.hitch("send", "--wait", "dev", "a person was faster")
    assert hub.ask("GET", "/api/usage")["limits"] == []

    # the hub dies while it waits
    ground.hitch("send", "dev", "limit in 4 seconds")
    becomes(ground, dev, "error")
    hub.kill()
    hub.start()
    becomes(ground, dev, "done")
    sent = ["limit in 1 hour", "a person was faster", "limit in 4 seconds", "go on"]
    assert prompts(ground) == sent
    (line,) = (line for line in dev.story() if line["event"] == "limit")
    assert (line["actor"], line["reason"]) == ("hub", "the usage limit has ended, so it was told to go on")

    # an end that nobody knows
    ground.hitch("send", "dev", "limit later")
    assert "the hub does not go on" in becomes(ground, dev, "error")["detail"]
    assert prompts(ground) == [*sent, "limit later"]
    ground.hitch("stop", "dev")

    # who waits for the outcome waits on
    words = ("run", "scripted-acp", "--name", "two", "--wait", "--json", "--prompt", "limit in 1 seconds")
    done = ground.hitch(*words, "--when-limit", "wait").json()
    assert (done["outcome"], done["session"]["report"]["state"]) == ("finished", "done")
    ground.hitch("stop", "two")
    hub.stop()

    # it can be chosen for the next run, and for one that runs and is at its limit already
    assert "only a hub goes on" in ground.hitch("resume", "dev", "--when-limit", "wait").err
    ground.hitch("send", "dev", "limit in 1 hour")
    becomes(ground, dev, "error")
    for chosen, goes_on in (("stop", False), ("wait", True)):
        ground.hitch("resume", "dev", "--when-limit", chosen)
        assert ("the hub goes on then" in ground.ps(dev)["detail"]) is goes_on
    ground.hitch("stop", "dev")


def test_who_waits_out_a_limit_is_not_told_what_no_hub_does(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.configure('when_limit = "wait"\nquiet_s = 0.01')
    dev = begin(ground)
    home, since = str(ground.home), datetime.now(UTC)
    ground.hitch("send", "dev", "limit in 1 hour")
    becomes(ground, dev, "error")
    seen = find(home, "dev")
    assert seen.facts.report is not None

    # what was surely not sent is neither told nor taken for a prompt
    with pytest.raises(Refused):
        go_on(home, dev.id, "\x00", actor="hub", caller=os.environ)
    dev.kill_keeper(signal.SIGSTOP)
    with monkeypatch.context() as short:
        short.setitem(Link.connect.__func__.__kwdefaults__, "timeout_s", 0.2)  # type: ignore[attr-defined]
        with pytest.raises(KeeperSilent):
            go_on(home, dev.id, "go on", actor="hub", caller=os.environ)
    dev.kill_keeper(signal.SIGCONT)
    assert find(home, "dev").record.gone_on_from == ""
    assert [line for line in dev.story() if line["event"] == "limit"] == []

    monkeypatch.setattr(outcome, "USAGE_S", 0.0)

    # the hub goes away while somebody waits for the outcome
    answers = iter((True, True, False))
    found = wait_for_outcome(home, seen, since, timeout_s=30.0, hub_is_up=lambda: next(answers), hub_every_s=0.01)
    assert (found.word, list(answers)) == ("limit", [])
    few = iter([True] * 4)  # it is not asked all the time, though the agent is silent
    with pytest.raises(TimedOut, match=r"after 0\.2 s"):
        wait_for_outcome(home, seen, since, timeout_s=0.2, hub_is_up=lambda: next(few, False), hub_every_s=0.1)

    # an agent that was told to go on, and does not
    stored = Session(seen.folder, actor="hub")
    with stored.lock():
        stored.save(replace(seen.record, gone_on_from=utc_text(seen.facts.report.at)))
    assert ground.ps(dev)["detail"].endswith("was told to go on")
    monkeypatch.setattr(outcome, "TOLD_S", 0.02)
    assert wait_for_outcome(home, seen, since, timeout_s=30.0, hub_is_up=lambda: True, hub_every_s=0.01).word == "limit"
    ground.hitch("stop", "dev")
    assert "only a hub goes on" in ground.hitch("run", "scripted-acp", "--name", "two", "--json").err
    ground.hitch("stop", "two")


def test_a_hub_that_is_killed_while_it_tells_an_agent_to_go_on_leaves_that_to_a_person(
    ground: Ground, hub: HubProcess
) -> None:
    dev = begin(ground, "dev", "--when-limit", "wait")
    ground.hitch("send", "dev", "limit in 3 seconds")
    becomes(ground, dev, "error")
    dev.kill_keeper(signal.SIGSTOP)
    eventually(lambda: find(str(ground.home), "dev").record.gone_on_from, what="the hub to go on")
    hub.kill()
    dev.kill_keeper(signal.SIGCONT)
    hub.start()
    shown = ground.ps(dev)
    assert (shown["section"], shown["detail"].endswith("is told to go on")) == ("quiet", True)

    # when that has lasted for too long, somebody has to look; no hub tries again
    seen = find(str(ground.home), "dev")
    stored = Session(seen.folder, actor="test")
    with stored.lock():
        stored.save(replace(seen.record, gone_on_at=utc_text(datetime.now(UTC) - timedelta(seconds=TELLING_S))))
    shown = eventually(lambda: found if (found := ground.ps(dev))["section"] == "needs-you" else None)
    assert shown["detail"].endswith(NOT_KNOWN)
    assert hub.ask("GET", "/api/sessions/dev")["detail"] == shown["detail"]
    assert go_on(str(ground.home), dev.id, "go on", actor="hub", caller=os.environ) is False
    assert prompts(ground) == ["limit in 3 seconds"]
    ground.hitch("send", "--wait", "dev", "hello")
    assert ground.ps(dev)["headline"] == "Finished"
    ground.hitch("stop", "dev")


def test_an_agent_that_may_have_been_told_to_go_on_is_not_told_again(ground: Ground) -> None:
    dev = begin(ground, "dev", "--when-limit", "wait")
    home = str(ground.home)
    ground.hitch("send", "dev", "limit in 1 hour")
    becomes(ground, dev, "error")
    client = dev.agent_pid()
    halt(client)
    with pytest.raises(Unclear, match="not known to be sent to dev: it has not answered within 10 s"):
        go_on(home, dev.id, "go on", actor="hub", caller=os.environ)
    os.kill(client, signal.SIGCONT)
    becomes(ground, dev, "done")
    assert prompts(ground) == ["limit in 1 hour", "go on"]
    assert find(home, "dev").record.gone_on_from != "", "or it would be told again"
    ground.hitch("stop", "dev")
