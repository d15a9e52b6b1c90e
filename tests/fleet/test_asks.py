"""What a hub asks of a pod gives what the same look gives on one machine."""

from __future__ import annotations

import os

import pytest

from hitchpost.agents import prepare
from hitchpost.agents.prepare import FORK, FRESH, RESUME, Conversation
from hitchpost.errors import KeeperSilent
from hitchpost.fleet.answers import RefusedInPod, checked, counts, difference, rows
from hitchpost.ops.views.diff import changed
from hitchpost.pod.runs import conversation_of
from hitchpost.runtimes.link import Silent
from hitchpost.store import records
from hitchpost.store.session import Session
from hitchpost.values import replace
from tests.fleet.processes import Fleet
from tests.fleet.test_life import ASLEEP, shows
from tests.ground import Truth
from tests.repos import Repo
from tests.support import eventually


def ask(fleet: Fleet, session: Truth, op: str, **fields: object) -> dict[str, object]:
    return fleet.links.ask(str(session.folder), {"op": op, **fields}, 60)


def test_a_difference_is_the_same_as_on_one_machine(fleet: Fleet, repo: Repo):
    script = r"printf 'caf\351\n' > new; echo more >> README; echo ready; exec sleep 1000"
    session = fleet.sh(script, place=repo.path)
    shows(session, b"ready")
    local = fleet.ground.begin("true", place=repo.path)
    base = records.read(str(fleet.pod(session).truth.folder)).base
    here = changed(fleet.home, replace(records.read(str(local.folder)), base=base))
    there = difference(ask(fleet, session, "diff"))
    assert there == here
    assert b"caf\xe9" in there.patch
    assert counts(ask(fleet, session, "changes")) == here.counts == (2, 2, 0)
    stat = difference(ask(fleet, session, "diff", stat=True))
    assert (stat.counts, stat.patch) == ((2, 2, 0), b"")
    fleet.stop(session)


def test_what_the_pod_refuses_is_the_same_error(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    with pytest.raises(RefusedInPod, match="was in no git repository") as refused:
        difference(ask(fleet, session, "diff"))
    assert (refused.value.code, refused.value.http_status, refused.value.exit_code) == ("wrong_state", 409, 4)
    unknown = ask(fleet, session, "fly")
    assert (unknown["ok"], unknown["error"]) == (False, "unknown request 'fly'")
    odd = ask(fleet, session, "leftovers", run="one")
    assert odd["ok"] is False
    assert ask(fleet, session, "ping") == {"ok": True}
    fleet.stop(session)


def test_a_session_with_a_branch_has_a_worktree_of_its_own_in_its_pod(fleet: Fleet, repo: Repo):
    """So what finishes a session's work finds there what it finds on one machine."""
    session = fleet.create("sh", "-c", "pwd; echo work > done; echo ready; exec sleep 1000", place=repo.path)
    stored = Session(str(session.folder), actor="test")
    stored.save(replace(stored.record(), branch="fix-auth"))
    fleet.start(session)
    shows(session, b"ready")
    record = stored.record()
    assert record.folder != str(repo.path)
    assert session.output().startswith(record.folder.encode())
    assert (record.branch, len(record.base or "")) == ("fix-auth", 40)
    plan = checked(ask(fleet, session, "finish_plan"))["plan"]
    assert (plan["branch"], plan["folder"], plan["commit"]["new"]) == ("fix-auth", record.folder, ["done"])
    assert plan["merge"]["kind"] == "fast-forward"
    with pytest.raises(RefusedInPod, match="no worktree of its own"):
        checked(ask(fleet, fleet.sh(ASLEEP), "finish_plan"))
    fleet.stop(session, by="restart")
    fleet.start(session)
    assert stored.record().folder == record.folder
    fleet.stop(session)


def test_a_pod_explains_itself(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    told = {fact: value for fact, value, _ in rows(ask(fleet, session, "explain", run=1))}
    assert told["agent's process"] == f"{session.agent_pid()}, S"
    assert told["room on the volume"].endswith("MiB")
    health = checked(ask(fleet, session, "health", run=1))
    assert (health["keeper_alive"], health["process_stopped"]) == (True, False)
    fleet.stop(session)


def test_a_pod_that_is_not_there_is_silent(fleet: Fleet):
    session = fleet.sh("exit 0")
    fleet.ended(session)
    fleet.pod(session).kill()
    with pytest.raises(Silent, match="cannot be reached"):
        fleet.links.ask(str(session.folder), {"op": "ping"}, 0.3)
    fleet.do(fleet.links.let_go(str(session.folder)))
    with pytest.raises(Silent, match="no link"):
        fleet.links.ask(str(session.folder), {"op": "ping"}, 0.3)


def test_stopping_never_signals_the_process_that_the_lock_in_the_copy_names(fleet: Fleet):
    """That is the hub. Somebody removes the socket, and stops the session at once."""
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    standin = fleet.links._standins[str(session.folder)][1]
    fleet.loop.call_soon_threadsafe(standin._timer.cancel)
    os.unlink(session.run() / "ctl.sock")
    with pytest.raises(KeeperSilent):
        fleet.stop(session)
    fleet.loop.call_soon_threadsafe(standin._check)
    eventually((session.run() / "ctl.sock").exists, what="the socket again")
    fleet.stop(session)
    assert session.state == "stopped"


def test_the_conversation_of_a_run_is_the_one_that_was_written_down():
    from hitchpost.agents import catalog
    from hitchpost.store.records import NOBODY

    claude = catalog.load("claude")
    known = prepare.new_conversation_id()
    record = replace(NOBODY, conversation_id=known)
    assert conversation_of(record, claude) == Conversation(FRESH, known)
    assert conversation_of(replace(record, conversation_begun=True), claude) == Conversation(RESUME, known)
    assert conversation_of(replace(record, fork_of="older"), claude) == Conversation(FORK, known, "older")
    assert conversation_of(record, None) == Conversation()
