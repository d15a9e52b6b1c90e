"""Two hubs over the real cluster and a real PostgreSQL: any of them answers, none of them is missed."""

from __future__ import annotations

import os

from tests.fleet.cluster_hubs import ECHO, Hubs, output, shown
from tests.hubs import HubProcess
from tests.support import eventually


def test_a_session_of_one_hub_is_shown_driven_and_stopped_by_the_other(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    first, second = two
    session = hubs.run(first, ECHO, name="dev")
    eventually(lambda: b"ready" in output(first, session), what="its output")
    eventually(lambda: shown(first, session) == shown(second, session), what="the same words")
    assert shown(second, session)["node"] in hubs.cluster.nodes
    second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "hello"})
    for hub in two:
        eventually(lambda hub=hub: b"<hello>" in output(hub, session), what="the answer")  # type: ignore[misc]
    second.ask("POST", f"/api/sessions/{session}/stop")
    for hub in two:
        eventually(lambda hub=hub: shown(hub, session)["label"] == "stopped", what="its end")  # type: ignore[misc]
    story = [line["event"] for line in first.ask("GET", f"/api/sessions/{session}/story")]
    assert story.count("state") == 4
    assert not hubs.cluster.exists("pod", f"hitch-{session}", hubs.namespace)


def test_a_hub_that_is_killed_takes_nothing_along_and_a_new_one_knows_everything(
    hubs: Hubs, two: tuple[HubProcess, HubProcess]
) -> None:
    first, second = two
    session = hubs.run(first, f"seq 2000; {ECHO}", name="dev")
    eventually(lambda: b"ready" in output(second, session), what="its output")
    first.kill()
    second.ask("POST", f"/api/sessions/{session}/prompt", {"text": "after"})
    eventually(lambda: b"<after>" in output(second, session), what="the answer")
    assert shown(second, session)["state"] == "running"
    hubs.start(first)
    eventually(lambda: shown(first, session) == shown(second, session), what="the same words")
    eventually(lambda: output(first, session) == output(second, session), what="the same output")
    second.ask("POST", f"/api/sessions/{session}/stop")
    whole = output(second, session)
    with hubs.one_more() as third:
        eventually(lambda: shown(third, session)["label"] == "stopped", what="what became of it")
        third.ask("GET", f"/api/sessions/{session}/screen")
        assert output(third, session) == whole
        assert whole.startswith(b"1\r\n2\r\n3\r\n")
        assert os.listdir(os.path.join(third.home, "sessions")) == [session]
