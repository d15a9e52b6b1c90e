"""Prompts through the hub that wait in the conversation, and prompts with images."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

import httpx2
import pytest

from hitchpost.acp import chat
from hitchpost.store.images import IMAGES, MOST_BYTES, ending_of
from tests.acp.pictures import png
from tests.acp.sessions import begin, let_go
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually

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
    ground.end(dev)


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

        # a file that has become something else is not served, and what is refused later is not kept
        (dev.folder / IMAGES / line["images"][1]).write_bytes(b"<svg>")
        assert client.get(f"/api/sessions/dev/images/{line['images'][1]}").status_code == 409
        client.post(PROMPT, json={"text": "ask"})
        eventually(lambda: hub.ask("GET", "/api/sessions/dev")["attention"] == "blocked", what="a permission")
        assert post(png(0, 200, 0)).status_code == 409
        assert sorted(line["images"]) == kept()
    ground.end(dev)
    ground.end(plain)


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
