"""Prompts through the hub that wait in the conversation, and prompts with images."""

from __future__ import annotations

import json
import os
import signal
import socket
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hitchpost.acp import chat
from hitchpost.agents.acp import SOCKET
from hitchpost.errors import Refused
from hitchpost.store.images import IMAGES, MOST_BYTES, MOST_KEPT_BYTES, ending_of, keep
from hitchpost.system.shortpath import ShortPath
from tests.acp.pictures import png
from tests.acp.sessions import begin, let_go
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually
from tests.watched import watcher_pid

PROMPT = "/api/sessions/dev/prompt"
RED, BLUE = png(200, 0, 0), png(0, 0, 200)


def said(dev: Truth, *kinds: str) -> list[tuple[str, Any]]:
    return [(line["type"], line.get("text")) for line in chat.read(str(dev.folder))[0] if line["type"] in kinds]


def test_a_prompt_waits_in_the_conversation_and_is_sent_once_or_taken_back(ground: Ground, hub: HubProcess) -> None:
    dev = begin(ground)
    assert hub.ask("GET", "/api/sessions/dev")["chat"] is True
    ends = [("queued", "two"), ("queued", "three"), ("taken_back", "two")]
    with hub.http() as client:
        assert client.post(PROMPT, json={"text": "hold"}).json()["waits"] is False
        for text in ("two", "three"):
            answer = client.post(PROMPT, json={"text": text}).json()
            assert (answer["waits"], answer["proof"], answer["delivered"]) == (True, "", False)
        (two, _) = [line for line in chat.read(str(dev.folder))[0] if line["type"] == "queued"]
        assert client.delete(f"/api/sessions/dev/prompts/{two['prompt']}").status_code == 204
        late = client.delete(f"/api/sessions/dev/prompts/{two['prompt']}")
        assert (late.status_code, late.json()["error"]["message"]) == (409, "not taken back: it does not wait any more")
    assert said(dev, "queued", "taken_back") == ends
    let_go(ground)
    eventually(lambda: ("turn", None) in said(dev, "user", "turn")[3:], what="the end of the second turn")
    assert said(dev, "user", "turn") == [("user", "hold"), ("turn", None), ("user", "three"), ("turn", None)]

    # a client of an older version does not say whether a prompt waits
    with socket.socket(socket.AF_UNIX) as door, ThreadPoolExecutor() as pool:
        os.unlink(dev.run() / SOCKET)
        with ShortPath(str(dev.run()), SOCKET) as path:
            door.bind(path)
        door.listen()
        served = pool.submit(serve_as_before, door)
        before = watcher_pid(dev)
        os.kill(before, signal.SIGKILL)
        watcher_pid(dev, but=before)
        assert hub.ask("POST", PROMPT, {"text": "four"})["proof"] == "session/prompt"
        assert served.result(timeout=60) == "four"
    ground.end(dev)


def test_a_turn_is_interrupted_from_outside_and_the_run_goes_on(ground: Ground, hub: HubProcess) -> None:
    dev = begin(ground)
    path = "/api/sessions/dev/interrupt"
    with hub.http() as client, hub.http("viewer") as viewer:
        idle = client.post(path)
        why = "dev was not interrupted: it does nothing that could be interrupted"
        assert (idle.status_code, idle.json()["error"]["message"]) == (409, why)
        client.post(PROMPT, json={"text": "wait"})
        client.post(PROMPT, json={"text": "never mind"})
        assert viewer.post(path).status_code == 403
        assert client.post(path).json()["run"] == 1
        eventually(lambda: ground.ps(dev)["attention"] == "waiting", what="its prompt")
        assert said(dev, "user", "not_sent", "turn") == [("user", "wait"), ("not_sent", "never mind"), ("turn", None)]
    ground.hitch("send", "dev", "wait")
    assert ground.hitch("interrupt", "dev").out == "dev: interrupted\n"
    eventually(lambda: ground.ps(dev)["attention"] == "waiting", what="its prompt")
    assert [line["actor"] for line in dev.story() if line["event"] == "interrupted"] == ["token test", "cli"]

    # who cannot be, is told what to do instead
    plain = ground.begin("sleep", "1000", name="plain")
    refused = ground.hitch("interrupt", "plain", check=4)
    assert "hitch attach plain opens it" in refused.err
    ground.end(plain)
    ground.end(dev)
    assert "dev is not running" in ground.hitch("interrupt", "dev", check=4).err


def serve_as_before(door: socket.socket) -> str:
    """The prompt that came."""
    door.settimeout(60)
    with door.accept()[0] as watcher, watcher.makefile("rw") as lines:
        watcher.settimeout(60)
        state = {"event": "state", "state": "idle", "kind": "", "message": "", "request": "", "options": []}
        lines.write(json.dumps(state) + "\n")
        lines.flush()
        asked = json.loads(lines.readline())
        lines.write(json.dumps({"id": asked["id"], "ok": True}) + "\n")
        lines.flush()
        return str(asked["text"])


def test_images_reach_the_agent_and_nothing_else_does(ground: Ground, hub: HubProcess) -> None:
    dev = begin(ground, images=True)
    plain = ground.begin("sleep", "1000", name="plain")

    def kept() -> list[str]:
        folder = dev.folder / IMAGES
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    with hub.http() as client:

        def post(*images: bytes, path: str = PROMPT, **more: Any) -> httpx2.Response:
            encoded = [b64encode(image).decode() for image in images]
            return client.post(path, json={"text": "look", "images": encoded, **more})

        # what is no image, too many, too large, or has nowhere to go
        refused = {
            "expected images to be PNG, JPEG, GIF or WebP, but got something else": post(RED, b"<svg onload=alert(1)>"),
            "at most 2621440 can go with a prompt": post(RED, RED + bytes(MOST_BYTES - len(RED))),
            "images cannot be typed": post(RED, force=True),
            "plain takes no images": post(RED, path="/api/sessions/plain/prompt"),
            "expected images in base64": client.post(PROMPT, json={"text": "look", "images": ["*"]}),
            "at most 4 items": post(*[RED] * 5),
            "a body has at most 4194304 bytes": post(RED + bytes(4 << 20)),
        }
        assert {why: why in answer.text for why, answer in refused.items()} == dict.fromkeys(refused, True)
        assert [answer.status_code for answer in refused.values()] == [422, 422, 422, 409, 422, 422, 413]
        assert kept() == []

        assert post(RED, BLUE, RED).json()["proof"] == "session/prompt"
        eventually(lambda: ("turn", None) in said(dev, "turn"), what="the end of the turn")
        seen = "".join(str(text) for _, text in said(dev, "agent"))
        assert seen == "".join(f"image image/png {sha256(data).hexdigest()[:8]}\n" for data in (RED, BLUE))
        (line,) = (line for line in chat.read(str(dev.folder))[0] if line["type"] == "user")
        assert sorted(line["images"]) == kept()
        shown = client.get(f"/api/sessions/dev/images/{line['images'][0]}")
        assert (shown.content, shown.headers["content-type"]) == (RED, "image/png")
        assert shown.headers["x-content-type-options"] == "nosniff"
        for name in ("..%2Fsession.json", "0" * 32 + ".png", "session.json"):
            assert client.get(f"/api/sessions/dev/images/{name}").status_code == 404

        # a file that has become something else is not served; what is refused later may be another prompt's, and stays
        (dev.folder / IMAGES / line["images"][1]).write_bytes(b"<svg>")
        assert client.get(f"/api/sessions/dev/images/{line['images'][1]}").status_code == 409
        client.post(PROMPT, json={"text": "ask"})
        eventually(lambda: hub.ask("GET", "/api/sessions/dev")["attention"] == "blocked", what="a permission")
        assert post(png(0, 200, 0)).status_code == 409
        assert len(kept()) == 3
    ground.end(dev)
    ground.end(plain)


def test_what_another_prompt_is_writing_does_not_count(tmp_path: Path) -> None:
    folder = tmp_path / IMAGES
    folder.mkdir()
    (folder / ".half.tmp").touch()
    os.truncate(folder / ".half.tmp", MOST_KEPT_BYTES)
    (name,) = keep(str(tmp_path), (RED, RED))
    assert keep(str(tmp_path), (RED,)) == [name], "and what is there already is not written again"
    os.truncate(folder / name, MOST_KEPT_BYTES)
    with pytest.raises(Refused, match="keeps 64 MiB of images already"):
        keep(str(tmp_path), (BLUE,))


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        (b"\xff\xd8\xff\xe0", "jpg"),
        (b"GIF89a", "gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"", ""),
        (b" \x89PNG\r\n\x1a\n", ""),
    ],
)
def test_an_image_is_known_by_its_first_bytes(data: bytes, ending: str) -> None:
    assert ending_of(data) == ending
