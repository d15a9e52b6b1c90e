"""Who may speak with whom: a pod with hubs of its installation only, a hub with the pod of that very session only."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hitchpost.fleet import frames
from hitchpost.fleet.identity import LIFE, Authority, NoAuthority, expires_at, is_due
from hitchpost.fleet.link import Refusing, tcp
from hitchpost.fleet.pipe import HANDSHAKE_S, Pipe
from hitchpost.fleet.tls import KEY, Identity, NotTrusted, name_of_session
from hitchpost.pod.server import MOST_STRANGERS
from tests.fleet.processes import Fleet, Pod
from tests.fleet.test_life import ASLEEP, shows
from tests.ground import Ground
from tests.support import eventually

SESSION, OTHER = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def authority() -> Authority:
    return Authority.make()


@pytest.fixture
def pod(ground: Ground, authority: Authority) -> Iterator[Pod]:
    made = Pod(ground.watch.scratch / "pod", SESSION, authority)
    made.begin()
    made.address()
    yield made
    made.kill()


def folder_with(ground: Ground, credentials: object) -> str:
    path = str(ground.watch.scratch / f"identity-{os.urandom(4).hex()}")
    credentials.write(path)  # type: ignore[attr-defined]
    return path


async def meet(pod: Pod, context: ssl.SSLContext, name: str = name_of_session(SESSION)) -> list[tuple[bytes, bytes]]:
    """Say hello; what the pod says first. Raises why it does not."""
    pipe = Pipe(context, name, beat_s=1, cut_s=10)
    sock = await tcp("127.0.0.1", pod.address())
    await asyncio.get_running_loop().create_connection(lambda: pipe, sock=sock)
    try:
        await pipe.ready()
        pipe.send(frames.json_frame(frames.HELLO, {"v": frames.VERSION, "session": SESSION}))
        if not (found := await pipe.frames()):
            raise pipe.error or ConnectionResetError("closed")
        return found
    finally:
        pipe.abort()


def talk(pod: Pod, folder: str, name: str = name_of_session(SESSION)) -> list[tuple[bytes, bytes]]:
    return asyncio.run(meet(pod, Identity(folder, is_pod=False).context(), name))


def test_a_hub_of_the_installation_is_welcomed(ground: Ground, pod: Pod, authority: Authority):
    ((kind, payload), *_) = talk(pod, folder_with(ground, authority.for_hub()))
    assert kind == frames.WELCOME
    assert frames.object_of(payload) == {"v": 1, "session": SESSION, "run": 0, "kept": 0, "paces": True}


def test_another_pods_certificate_is_refused_and_told(ground: Ground, pod: Pod, authority: Authority):
    with pytest.raises(NotTrusted, match="the pod does not accept this certificate"):
        talk(pod, folder_with(ground, authority.for_session(OTHER)))
    eventually(lambda: "refused 127.0.0.1: the hub's certificate is not accepted" in pod.log(), what="the pod's word")


def test_a_certificate_that_names_no_hub_is_refused_even_where_it_may_be_a_clients(
    ground: Ground, pod: Pod, authority: Authority, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("hitchpost.fleet.identity.HUB", name_of_session(OTHER))
    ((kind, payload),) = talk(pod, folder_with(ground, authority.for_hub()))
    why = f"expected the certificate of a hub, but got that of {name_of_session(OTHER)}"
    assert (kind, frames.object_of(payload)) == (frames.REFUSED, {"why": why})
    eventually(lambda: why in pod.log(), what="the pod's word")


def test_no_certificate_is_refused_and_told(ground: Ground, pod: Pod, authority: Authority):
    folder = folder_with(ground, authority.for_hub())
    context = ssl.create_default_context(cafile=os.path.join(folder, "authority.pem"))
    with pytest.raises(NotTrusted, match=r"the pod does not accept this certificate: .*certificate required"):
        asyncio.run(meet(pod, context))
    eventually(lambda: "refused 127.0.0.1: the hub shows no certificate" in pod.log(), what="the pod's word")


def test_an_expired_certificate_is_refused_and_told(ground: Ground, pod: Pod, authority: Authority):
    with pytest.raises(NotTrusted, match=r"the pod does not accept this certificate: .*expired"):
        talk(pod, folder_with(ground, authority.for_hub(LONG_AGO)))
    eventually(lambda: "certificate has expired" in pod.log(), what="the pod's word")


def test_another_authoritys_certificate_is_refused_and_told(ground: Ground, pod: Pod, authority: Authority):
    stranger = Authority.make().for_hub()
    folder = folder_with(ground, stranger)
    Path(folder, "authority.pem").write_bytes(authority.certificate)  # it trusts the pod, and the pod does not trust it
    with pytest.raises(NotTrusted, match=r"the pod does not accept this certificate: .*unknown ca"):
        talk(pod, folder)
    eventually(lambda: "the hub's certificate is not accepted" in pod.log(), what="the pod's word")


def test_a_port_that_is_only_looked_at_is_no_news(pod: Pod):
    async def look() -> None:
        (await tcp("127.0.0.1", pod.address())).close()

    before = pod.log()
    for _ in range(5):
        asyncio.run(look())
    assert pod.log() == before


def test_who_keeps_the_door_busy_keeps_no_hub_out(ground: Ground, pod: Pod, authority: Authority):
    """Other pods can connect where no policy keeps them away. They show nobody who they are, and hold on."""
    folder = folder_with(ground, authority.for_hub())
    busy = [socket.create_connection(("127.0.0.1", pod.address())) for _ in range(3 * MOST_STRANGERS)]
    try:
        began = time.monotonic()
        assert talk(pod, folder)[0][0] == frames.WELCOME
        assert time.monotonic() - began < HANDSHAKE_S
    finally:
        for peer in busy:
            peer.close()


def test_a_hub_accepts_the_pod_of_that_very_session_only(ground: Ground, pod: Pod, authority: Authority):
    hub = folder_with(ground, authority.for_hub())
    with pytest.raises(NotTrusted, match=r"the pod's certificate is not accepted: .*ostname mismatch"):
        talk(pod, hub, name_of_session(OTHER))
    with pytest.raises(NotTrusted, match=r"the pod's certificate is not accepted: .*self-signed certificate"):
        talk(pod, folder_with(ground, Authority.make().for_hub()))


def test_a_pod_whose_certificate_has_expired_is_not_accepted_and_one_with_a_new_one_is(
    ground: Ground, pod: Pod, authority: Authority
):
    """Without being started again: new files count from the next connection on."""
    hub = folder_with(ground, authority.for_hub())
    authority.for_session(SESSION, LONG_AGO).write(str(pod.identity))
    with pytest.raises(NotTrusted, match="the pod's certificate is not accepted: certificate has expired"):
        talk(pod, hub)
    authority.for_session(SESSION).write(str(pod.identity))
    assert talk(pod, hub)[0][0] == frames.WELCOME


def test_a_hub_of_another_version_or_session_is_told_why(ground: Ground, pod: Pod, authority: Authority):
    folder = folder_with(ground, authority.for_hub())

    async def other() -> list[tuple[bytes, bytes]]:
        pipe = Pipe(Identity(folder, is_pod=False).context(), name_of_session(SESSION), beat_s=1, cut_s=10)
        sock = await tcp("127.0.0.1", pod.address())
        await asyncio.get_running_loop().create_connection(lambda: pipe, sock=sock)
        await pipe.ready()
        pipe.send(frames.json_frame(frames.HELLO, {"v": 99, "session": SESSION}))
        found = await pipe.frames()
        pipe.abort()
        return found

    ((kind, payload),) = asyncio.run(other())
    assert kind == frames.REFUSED
    assert frames.object_of(payload)["why"] == f"expected version 1 and session {SESSION}"
    assert Refusing.code == "refused_by_pod"


def test_a_link_says_why_it_is_not_accepted(fleet: Fleet):
    session = fleet.sh(ASLEEP)
    shows(session, b"ready")
    link = fleet.link(session)
    Authority.make().for_hub().write(str(fleet.identity))
    fleet.cut(session)
    eventually(lambda: "not accepted" in link.why_down, what="the reason")
    assert link.up_since is None
    fleet.authority.for_hub().write(str(fleet.identity))
    eventually(lambda: link.up_since is not None, what="the link again, with the new certificate")
    fleet.stop(session)


def test_keys_are_for_their_owner_only_and_certificates_are_renewed_in_time(ground: Ground, authority: Authority):
    folder = folder_with(ground, authority.for_session(SESSION))
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in Path(folder).iterdir()} == {0o600}
    now = datetime.now(UTC)
    certificate = authority.for_hub(now).certificate
    assert abs(expires_at(certificate) - now - LIFE) < timedelta(seconds=2)
    assert not is_due(certificate, now)
    assert not is_due(certificate, now + timedelta(days=19))
    assert is_due(certificate, now + timedelta(days=21))
    assert is_due(b"nonsense")


def test_an_authority_is_made_once_and_found_again(ground: Ground):
    folder = str(ground.watch.scratch / "authority")
    made = Authority.in_folder(folder)
    found = Authority.in_folder(folder)
    assert (made.certificate, made.key) == (found.certificate, found.key)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path(folder).iterdir()}
    assert modes == {"authority.pem": 0o600, "authority-key.pem": 0o600, "lock": 0o600}
    with pytest.raises(NoAuthority, match="does not belong"):
        Authority.from_pem(made.certificate, Authority.make().key)
    with pytest.raises(NoAuthority, match="cannot be read"):
        Authority.from_pem(b"", b"")
    with pytest.raises(ValueError, match="expected the id of a session"):
        made.for_session("../hub")


def test_a_folder_without_certificates_is_told(ground: Ground, authority: Authority):
    with pytest.raises(NotTrusted, match="cannot be used: no such file"):
        Identity(str(ground.watch.scratch), is_pod=False).context()
    folder = folder_with(ground, authority.for_hub())
    Path(folder, KEY).write_text("nonsense")
    with pytest.raises(NotTrusted, match="cannot be used"):
        Identity(folder, is_pod=False).context()
