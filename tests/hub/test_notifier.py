"""Being told by a real hub: what is news, by which ways, and once, wherever a ``kill -9`` meets it."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect, unix_connect

from hitchpost.hub.client import SOCKET
from hitchpost.notify import journal
from hitchpost.store.home import session_folder
from hitchpost.store.session import Session
from hitchpost.system.shortpath import ShortPath
from tests.ground import Ground, Truth
from tests.hubs import HubProcess, hub_of
from tests.notify.receivers import Browser, Receiver, receiver
from tests.security.attacks import sign_in
from tests.support import eventually
from tests.watched import say

ASKS = say("blocked", ":kind=permission", "rm -r build") + "read line"
AT_ONCE = "dwell_s = 0\ngroup_s = 0\ncooldown_s = 0\n"


@pytest.fixture
def web() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def configured(ground: Ground, web: Receiver, more: str = AT_ONCE) -> None:
    """A webhook, which tells repeated messages, and ntfy, which does not, both at one receiver."""
    ground.configure(
        f'[notify]\nwebhook_url = "{web.url}/hook"\nwebhook_secret = "s3cret"\nntfy_url = "{web.url}/topic"\n'
        f'ntfy_token = "tk_t0ken"\noff = ["terminal", "browser"]\n{more}'
    )


def lines(ground: Ground, what: str = "") -> list[dict[str, Any]]:
    found = journal.lines(os.path.join(ground.home, journal.FOLDER, journal.FILE))
    return [line for line in found if what in ("", line["what"])]


def hooks(web: Receiver) -> list[dict[str, Any]]:
    return [got.json() for got in web.got if got.path == "/hook"]


def topics(web: Receiver) -> list[dict[str, Any]]:
    return [got.json() for got in web.got if got.path == "/"]


def outcomes(ground: Ground) -> list[tuple[str, str]]:
    return [(line["channel"], line["outcome"]) for line in lines(ground, journal.OUTCOME)]


def settled(ground: Ground, count: int) -> list[tuple[str, str]]:
    """The outcomes, once there are that many."""

    def found() -> list[tuple[str, str]] | None:
        all_of_them = outcomes(ground)
        return all_of_them if len(all_of_them) >= count else None

    return sorted(eventually(found, 30, f"{count} outcomes"))


def fail(ground: Ground, name: str) -> Truth:
    return ground.begin_sh("echo oh; exit 3", name=name)


def is_at_rest(hub: HubProcess, ground: Ground, web: Receiver, name: str) -> None:
    """Another session that fails is told: whatever came before it was handled by then."""
    fail(ground, name)
    eventually(lambda: any(hook["title"].startswith(f"{name}:") for hook in hooks(web)), 30, f"{name} to be told")


def test_a_failed_run_is_told_once_with_a_link_and_nothing_secret_is_written(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    with hub_of(ground) as hub:
        dev = fail(ground, "dev")
        assert settled(ground, 2) == [("ntfy", "sent"), ("webhook", "sent")]
        is_at_rest(hub, ground, web, "other")
        assert [hook["title"] for hook in hooks(web)] == ["dev: Failed", "other: Failed"]
        (first, _) = hooks(web)
        assert (first["session"], first["body"]) == (dev.id, "command exited with code 3")
        assert first["link"] == f"{hub.url}/?session={dev.id}"
        text = json.dumps(lines(ground)) + hub.log()
    assert [word for word in ("s3cret", "tk_t0ken", "/topic", "/hook") if word in text] == []


def test_an_agent_that_asks_is_told_after_the_dwell_and_not_if_somebody_looks(ground: Ground, web: Receiver) -> None:
    configured(ground, web, "dwell_s = 1.5\ngroup_s = 0\n")
    with hub_of(ground) as hub:
        seen = ground.begin_sh(ASKS, name="seen")
        eventually(lambda: lines(ground, journal.NOTED), 30, "it to be noted")
        Session(session_folder(hub.home, seen.id), actor="test").mark_seen()
        (dropped,) = eventually(lambda: lines(ground, journal.DROPPED), 30, "it to be dropped")
        assert (dropped["session"], dropped["why"]) == (seen.id, "somebody looked")
        told = ground.begin_sh(ASKS, name="told")
        settled(ground, 2)
        (hook,) = hooks(web)
        assert (hook["title"], hook["body"], hook["session"]) == ("told: Needs permission", "rm -r build", told.id)
        ground.end(seen)
        ground.end(told)


def test_many_at_once_are_one_message_or_two(ground: Ground, web: Receiver) -> None:
    configured(ground, web, "dwell_s = 0\ngroup_s = 4\n")
    with hub_of(ground):
        for number in range(5):
            fail(ground, f"dev{number}")
        settled(ground, 4)
        first, second = hooks(web)
        assert (first["title"], second["title"]) == ("dev0: Failed", "4 sessions: 4 × Failed")
        assert second["body"].startswith("dev1: Failed · command exited with code 3")


def test_what_was_so_before_the_hub_began_is_not_told(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    fail(ground, "before").ended()
    with hub_of(ground) as hub:
        is_at_rest(hub, ground, web, "one")
        hub.stop()
        fail(ground, "between").ended()
        hub.start()
        is_at_rest(hub, ground, web, "two")
    assert [hook["title"] for hook in hooks(web)] == ["one: Failed", "two: Failed"]


def test_what_was_so_before_is_not_told_of_a_session_that_is_heard_of_late(ground: Ground, web: Receiver) -> None:
    configured(ground, web, f"{AT_ONCE}grace_s = 0\n")
    late = fail(ground, "late")
    late.ended()
    folder, elsewhere = session_folder(str(ground.home), late.id), f"{ground.place}/{late.id}"
    os.rename(folder, elsewhere)
    with hub_of(ground) as hub:
        is_at_rest(hub, ground, web, "one")
        os.rename(elsewhere, folder)
        eventually(lambda: "late" in [one["name"] for one in hub.ask("GET", "/api/sessions")], 30, "it to be heard of")
        is_at_rest(hub, ground, web, "two")
    assert [hook["title"] for hook in hooks(web)] == ["one: Failed", "two: Failed"]


# kill -9, wherever ------------------------------------------------------------------------------------------------


def test_killed_before_it_was_noted_it_is_told_once_by_the_next_hub(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    with hub_of(ground) as hub:
        assert hub.process is not None
        hub.process.send_signal(signal.SIGSTOP)
        fail(ground, "dev").ended()
        hub.kill()
        assert lines(ground, journal.NOTED) == []
        for _ in range(2):
            hub.start()
            assert settled(ground, 2) == [("ntfy", "sent"), ("webhook", "sent")]
            hub.kill()
        hub.start()
        is_at_rest(hub, ground, web, "other")
    assert [topic["title"] for topic in topics(web)] == ["dev: Failed", "other: Failed"]
    assert [hook["title"] for hook in hooks(web)] == ["dev: Failed", "other: Failed"]


@pytest.mark.parametrize("end", [HubProcess.kill, HubProcess.stop])
def test_ended_in_the_dwell_it_is_told_once_by_the_next_hub(
    ground: Ground, web: Receiver, end: Callable[[HubProcess], object]
) -> None:
    configured(ground, web, "dwell_s = 600\ngroup_s = 0\n")
    with hub_of(ground) as hub:
        fail(ground, "dev")
        eventually(lambda: lines(ground, journal.NOTED), 30, "it to be noted")
        end(hub)
        assert web.got == []
        configured(ground, web)
        for _ in range(2):
            hub.start()
            settled(ground, 2)
            hub.kill()
        hub.start()
        is_at_rest(hub, ground, web, "other")
    assert [topic["title"] for topic in topics(web)] == ["dev: Failed", "other: Failed"]
    assert [hook["title"] for hook in hooks(web)] == ["dev: Failed", "other: Failed"]


def test_killed_while_it_is_sent_it_is_repeated_only_where_its_id_tells(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    with hub_of(ground) as hub:
        both = killed_when(hub, web, lambda: len(web.got) == 2)
        fail(ground, "dev")
        both()
        assert outcomes(ground) == []
        hub.start()
        assert settled(ground, 2) == [("ntfy", "unknown"), ("webhook", "sent")]
        is_at_rest(hub, ground, web, "other")
    assert [topic["title"] for topic in topics(web)] == ["dev: Failed", "other: Failed"]
    told = [got for got in web.got if got.path == "/hook"]
    assert [got.json()["title"] for got in told] == ["dev: Failed", "dev: Failed", "other: Failed"]
    assert len({got.headers["webhook-id"] for got in told}) == 2  # the receiver knows the repeated one


def test_killed_before_it_left_it_is_told_once_by_what_repeats_and_never_by_what_does_not(
    ground: Ground, web: Receiver
) -> None:
    """The receiver's place is taken by a socket that lets nobody in until the hub is dead."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with socket.create_connection(deaf.getsockname()), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(deaf.getsockname())
            configured(ground, Receiver(url=address))
            with hub_of(ground) as hub:
                fail(ground, "dev")
                eventually(lambda: lines(ground, journal.BEGUN), 30, "it to be begun")
                hub.kill()
                assert outcomes(ground) == []
                configured(ground, web)
                hub.start()
                assert settled(ground, 2) == [("ntfy", "unknown"), ("webhook", "sent")]
                is_at_rest(hub, ground, web, "other")
    assert [topic["title"] for topic in topics(web)] == ["other: Failed"]
    assert [hook["title"] for hook in hooks(web)] == ["dev: Failed", "other: Failed"]


def test_killed_after_the_outcome_it_is_not_told_again(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    with hub_of(ground) as hub:
        fail(ground, "dev")
        settled(ground, 2)
        hub.kill()
        hub.start()
        is_at_rest(hub, ground, web, "other")
    assert [topic["title"] for topic in topics(web)] == ["dev: Failed", "other: Failed"]
    assert [hook["title"] for hook in hooks(web)] == ["dev: Failed", "other: Failed"]


def killed_when(hub: HubProcess, web: Receiver, condition: Callable[[], bool]) -> Callable[[], None]:
    """Kill the hub when the condition holds, before any request is answered. Call the answer to wait for that."""
    killed = threading.Event()

    def kill(got: object) -> None:
        if killed.is_set():
            return
        if condition():
            hub.kill()
            killed.set()
        killed.wait(30)

    web.before = kill
    return lambda: (eventually(killed.is_set, 30, "the hub to be killed"), None)[1]


# Web Push, and what is chosen over REST ------------------------------------------------------------------------------


def test_a_browser_that_subscribed_gets_what_only_it_can_read_through_a_killed_hub_too(
    ground: Ground, web: Receiver
) -> None:
    browser = Browser()
    ground.configure(f'[notify]\npush_hosts = ["{web.host}"]\n{AT_ONCE}')
    with hub_of(ground) as hub:
        key = hub.ask("GET", "/api/notifications")["push_key"]
        with hub.http() as client:
            made = client.post("/api/notifications/subscriptions", json=browser.subscription(f"{web.url}/push/1"))
            assert made.status_code == 201
        hub.kill()
        hub.start()
        dev = fail(ground, "dev")
        eventually(lambda: web.got, 30, "a push message")
        (got,) = web.got
        told = browser.read(got.body)
        assert (told["title"], told["session"]) == ("dev: Failed", dev.id)
        assert browser.claims(got.headers["authorization"], key)["aud"] == web.url
        assert hub.ask("GET", "/api/notifications")["push_key"] == key
        assert "push/1" not in json.dumps(lines(ground)) + hub.log()
        web.status = 410
        fail(ground, "again")
        eventually(lambda: hub.ask("GET", "/api/notifications")["subscriptions"] == [], 30, "the end of it")


def test_what_is_chosen_holds_at_once_and_for_the_next_hub(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    with hub_of(ground) as hub, hub.http() as client:
        before = client.get("/api/notifications").json()
        ready = {channel["name"]: (channel["ready"], channel["on"]) for channel in before["channels"]}
        assert ready["ntfy"] == (True, True)
        assert ready["terminal"] == (True, False)
        assert ready["command"] == (False, True)
        chosen = {"sessions": {"mute": []}, "off": ["ntfy"], "quiet_hours": ""}
        after = client.put("/api/notifications", json=chosen).json()
        assert (after["sessions"], after["kinds"]) == ({"mute": []}, before["kinds"])
        fail(ground, "mute").ended()
        is_at_rest(hub, ground, web, "one")
        hub.stop()
        hub.start()
        ground.hitch("restart", "mute", check=False)
        is_at_rest(hub, ground, web, "two")
    assert [hook["title"] for hook in hooks(web)] == ["one: Failed", "two: Failed"]
    assert topics(web) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"kinds": ["everything"]},
        {"quiet_hours": "22-7"},
        {"quiet_hours": "25:00-07:00"},
        {"dwell_s": -1},
        {"off": ["x"]},
        {"ntfy_url": "http://evil.example.org/"},
        {"command": ["id"]},
    ],
)
def test_the_page_chooses_what_there_is_and_sets_no_address_or_command(hub: HubProcess, wrong: dict[str, Any]) -> None:
    with hub.http() as client:
        assert client.put("/api/notifications", json=wrong).status_code == 422


def test_viewers_look_and_do_not_change_or_send(hub: HubProcess) -> None:
    with hub.http("viewer") as client:
        assert client.get("/api/notifications").status_code == 200
        assert client.put("/api/notifications", json={}).status_code == 403
        assert client.post("/api/notifications/test", json={}).status_code == 403
        subscription = Browser().subscription("https://fcm.googleapis.com/x")
        assert client.post("/api/notifications/subscriptions", json=subscription).status_code == 403


def test_a_test_message_says_what_became_of_it(ground: Ground, web: Receiver) -> None:
    configured(ground, web)
    with hub_of(ground):
        done = ground.hitch("notify", "--test", "--json").json()
        assert [(one["channel"], one["outcome"], one["why"]) for one in done] == [
            ("ntfy", "sent", "HTTP 200"),
            ("webhook", "sent", "HTTP 200"),
        ]
        web.status = 403
        answer = ground.hitch("notify", "--test", "ntfy", check=1)
        assert "HTTP 403" in answer.out
        unknown = ground.hitch("notify", "--test", "pigeon", check=3)
        assert "the way 'pigeon' is not set up" in unknown.err
        shown = [line.split() for line in ground.hitch("notify").out.splitlines()]
        assert ["ntfy", "on", web.url] in shown
        assert ["command", "not", "set", "up"] in shown
        log = ground.hitch("notify", "log").out
        assert "Hitchpost: a test" in log
        assert "HTTP 403" in log
    assert "Hitchpost: a test" in ground.hitch("notify", "log").out  # without the hub, too
    without = ground.hitch("notify", check=1)
    assert "hitch up starts it" in without.err


def test_a_test_message_that_reaches_nobody_says_so(ground: Ground) -> None:
    with hub_of(ground) as hub:
        done = ground.hitch("notify", "--test", "--json", check=1).json()
        assert [(one["channel"], one["outcome"], one["why"]) for one in done] == [
            ("browser", "nobody", "no page is open"),
            ("terminal", "nobody", "no terminal is attached"),
        ]

        def beside(connection: ClientConnection) -> list[str]:
            with connection:
                done = hub.ask("POST", "/api/notifications/test", {})
                assert json.loads(connection.recv(20))["type"] == "notification"  # it was there
                return [one["outcome"] for one in done]

        with ShortPath(str(ground.home), SOCKET) as path:
            assert beside(unix_connect(path, "ws://hub/ws")) == ["nobody", "nobody"]  # such as hitch top
            assert beside(unix_connect(path, "ws://hub/ws?hears=terminal")) == ["nobody", "sent"]
        signed = {"Authorization": f"Bearer {sign_in(hub).token}"}
        page = connect(hub.url.replace("http", "ws") + "/ws", additional_headers=signed)
        assert beside(page) == ["sent", "nobody"]


# what is broken ---------------------------------------------------------------------------------------------------


def test_a_hub_that_has_no_folder_for_notifications_says_so_and_does_all_else(ground: Ground) -> None:
    open(os.path.join(ground.home, journal.FOLDER), "w").close()
    with hub_of(ground) as hub:
        with hub.http() as client:
            assert client.get("/api/notifications").status_code == 503
        assert "being told" in json.dumps(hub.ask("GET", "/api/health"))
        assert fail(ground, "dev").ended() == "failed"
        assert hub.stop() == 0


def test_a_hub_that_cannot_write_its_notification_log_is_told_to_leave_and_leaves(ground: Ground) -> None:
    with hub_of(ground) as hub:
        path = os.path.join(ground.home, journal.FOLDER, journal.FILE)
        os.unlink(path)
        os.mkdir(path)
        assert hub.stop() == 0


def test_a_choice_that_makes_no_sense_is_passed_over(ground: Ground) -> None:
    path = os.path.join(ground.home, journal.FOLDER, "choices.json")
    os.mkdir(os.path.dirname(path))
    with open(path, "w") as file:
        json.dump({"schema": 1, "dwell_s": "soon", "kinds": 7, "quiet_hours": "late", "off": ["push"]}, file)
    with hub_of(ground) as hub, hub.http() as client:
        found = client.get("/api/notifications").json()
        assert (found["dwell_s"], found["kinds"], found["quiet_hours"]) == (3, found["every_kind"], "")
        assert [channel["name"] for channel in found["channels"] if not channel["on"]] == ["push"]


def test_a_test_message_when_every_way_is_off_says_so(hub: HubProcess) -> None:
    with hub.http() as client:
        client.put("/api/notifications", json={"off": ["browser", "terminal"]})
        answer = client.post("/api/notifications/test", json={})
        assert (answer.status_code, "every way is off" in answer.text) == (404, True)
