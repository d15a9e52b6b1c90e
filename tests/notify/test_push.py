"""Web Push: the standard's own example, a browser that reads what is sent, keys of the home, allowed places."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature

from hitchpost.notify import push_crypto
from hitchpost.notify.channel import Undelivered
from hitchpost.notify.message import Message
from hitchpost.notify.push import MOST_SUBSCRIPTIONS, BadSubscription, Push, Subscription, Subscriptions, subscription
from tests.notify.receivers import Browser, receiver

MESSAGE = Message(
    "0123456789abcdef01234567", "dev: Needs permission", "rm -r ☃", "http://hub/?session=s", "s", "permission"
)


def test_the_example_of_rfc_8291_comes_out_byte_for_byte() -> None:
    private = push_crypto.from_base64url("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw").hex()
    sealed = push_crypto.encrypt(
        b"When I grow up, I want to be a watermelon",
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "BTBZMqHH6r4Tts7J_aSIgg",
        private=private,
        salt=push_crypto.from_base64url("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert push_crypto.to_base64url(sealed) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
        "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_a_browser_can_read_what_is_sent_and_check_who_sends_it(tmp_path: Path) -> None:
    browser, kept = Browser(), Subscriptions(str(tmp_path))
    public = kept.public_key()
    with receiver() as service:
        wanted = browser.subscription(f"{service.url}/push/abc")
        to = subscription(wanted["endpoint"], wanted["keys"]["p256dh"], wanted["keys"]["auth"], [service.host], "test")
        channel = Push(to, kept.key, "mailto:me@example.org", lambda _: None)
        service.status = 201
        assert asyncio.run(channel.send(MESSAGE)) == "HTTP 201"
    (got,) = service.got
    assert browser.read(got.body) == MESSAGE.as_json()
    claims = browser.claims(got.headers["authorization"], public)
    assert (claims["aud"], claims["sub"]) == (service.url, "mailto:me@example.org")
    assert time.time() < claims["exp"] <= time.time() + 24 * 3600
    assert got.headers["content-encoding"] == "aes128gcm"
    assert (got.headers["topic"], got.headers["urgency"]) == (MESSAGE.id, "high")
    assert len(got.headers["topic"]) <= 32
    assert b"permission" not in got.body
    with pytest.raises((InvalidSignature, AssertionError)):
        browser.claims(got.headers["authorization"], push_crypto.public_key(push_crypto.new_key()))


@pytest.mark.parametrize("letter", ["a", "字", "🙂", '"'])
def test_a_browser_gets_as_much_of_a_long_message_as_its_push_service_takes(letter: str) -> None:
    browser = Browser()
    body = "\n".join([letter * 160] * 5 + ["and 3 more"])
    message = Message(MESSAGE.id, letter * 120, body, "http://hub/", "", "permission")
    with receiver() as service:
        keys = browser.subscription(f"{service.url}/p")["keys"]
        to = Subscription("id1", f"{service.url}/p", keys["p256dh"], keys["auth"])
        asyncio.run(Push(to, push_crypto.new_key(), "mailto:me@example.org", lambda _: None).send(message))
    (got,) = service.got
    assert len(got.body) <= 4096
    read = browser.read(got.body)
    assert {**read, "body": ""} == {**message.as_json(), "body": ""}
    assert body.startswith(read["body"].removesuffix("…"))
    assert len(read["body"]) >= 800 or letter == "🙂"


def test_subscriptions_may_be_read_while_one_is_added_or_removed(tmp_path: Path) -> None:
    kept = Subscriptions(str(tmp_path))
    kept.add(Subscription("1", "", "", ""))
    before = iter(kept.all)
    kept.add(Subscription("2", "", "", ""))
    kept.remove("1")
    assert list(before) == ["1"]
    assert list(kept.all) == ["2"]


def test_a_subscription_that_has_ended_is_forgotten() -> None:
    wanted = Browser().subscription("http://x")
    forgotten: list[str] = []
    with receiver() as service:
        service.status = 410
        to = Subscription("id1", f"{service.url}/p", wanted["keys"]["p256dh"], wanted["keys"]["auth"])
        channel = Push(to, push_crypto.new_key(), "mailto:me@example.org", forgotten.append)
        with pytest.raises(Undelivered, match="HTTP 410"):
            asyncio.run(channel.send(MESSAGE))
    assert forgotten == ["id1"]


def test_the_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    kept = Subscriptions(str(tmp_path))
    public = kept.public_key()
    assert os.stat(kept.path).st_mode & 0o777 == 0o600
    assert Subscriptions(str(tmp_path)).public_key() == public


def test_subscriptions_are_kept_and_bounded(tmp_path: Path) -> None:
    kept = Subscriptions(str(tmp_path))
    kept.public_key()
    for number in range(MOST_SUBSCRIPTIONS + 3):
        kept.add(Subscription(str(number), f"https://fcm.googleapis.com/{number}", "p", "a"))
    again = Subscriptions(str(tmp_path))
    assert (len(again.all), "2" in again.all, "3" in again.all) == (MOST_SUBSCRIPTIONS, False, True)
    assert (again.remove("3"), again.remove("3")) == (True, False)
    assert "3" not in Subscriptions(str(tmp_path)).all


@pytest.mark.parametrize(
    ("endpoint", "fine"),
    [
        ("https://fcm.googleapis.com/fcm/send/abc", True),
        ("https://updates.push.services.mozilla.com/wpush/v2/abc", True),
        ("https://web.push.apple.com/abc", True),
        ("https://push.example.org/abc", True),
        ("http://127.0.0.1:7/abc", True),
        ("https://evil.example.org/abc", False),
        ("https://evilfcm.googleapis.com.example.org/abc", False),
        ("https://fcm.googleapis.com:8443/abc", False),
        ("https://fcm.googleapis.com@evil.example.org/", False),
        ("http://push.example.org/abc", False),
        ("http://127.0.0.1:8/abc", False),
        ("https://127.0.0.1/abc", False),
        ("file:///etc/passwd", False),
        ("https://", False),
        ("https://fcm.googleapis.com/\r\nX: 1", False),
    ],
)
def test_a_browser_subscribes_only_at_known_services_and_at_those_of_the_settings(endpoint: str, fine: bool) -> None:
    keys = Browser().subscription(endpoint)["keys"]
    hosts = ["push.example.org", "127.0.0.1:7"]
    if fine:
        assert subscription(endpoint, keys["p256dh"], keys["auth"], hosts, "test").endpoint == endpoint
    else:
        with pytest.raises(BadSubscription):
            subscription(endpoint, keys["p256dh"], keys["auth"], hosts, "test")


@pytest.mark.parametrize(("p256dh", "auth"), [("", ""), ("AAAA", "AAAA"), ("B" * 87, "A" * 22), ("é", "*")])
def test_keys_that_are_none_are_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(BadSubscription, match="expected a push subscription"):
        subscription("https://fcm.googleapis.com/x", p256dh, auth, [], "test")
