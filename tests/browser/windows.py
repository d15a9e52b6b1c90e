"""A browser window with our page, and what came over its WebSockets."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Dialog, FloatRect, Locator, Page, WebSocket, expect
from pydantic import TypeAdapter, ValidationError

from hitchpost.hub.http.messages import ClientMessage, HubMessage
from tests.hubs import GAP, OUTPUT, SNAPSHOT, Frame, HubProcess

FROM_HUB: TypeAdapter[Any] = TypeAdapter(HubMessage)
FROM_PAGE: TypeAdapter[Any] = TypeAdapter(ClientMessage)
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Wire:
    """One WebSocket: what was said on it, both ways, in order."""

    events: list[dict[str, Any]] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    said: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def check(self, kind: TypeAdapter[Any], payload: str) -> None:
        """The page's types are made of these schemas, so whatever is said has to be as they say, and no more."""
        try:
            kind.validate_json(payload, extra="forbid")
        except ValidationError as error:
            self.errors.append(f"{payload[:200]}: {error}")

    def hear(self, payload: str | bytes) -> None:
        if isinstance(payload, str):
            self.check(FROM_HUB, payload)
            self.events.append(json.loads(payload))
        else:
            channel, offset = int.from_bytes(payload[1:5], "big"), int.from_bytes(payload[5:13], "big")
            self.frames.append(Frame(payload[0], channel, offset, payload[13:]))

    def say(self, payload: str | bytes) -> None:
        assert isinstance(payload, str)
        self.check(FROM_PAGE, payload)
        self.said.append(json.loads(payload))

    def asked(self, kind: str, session: str) -> list[dict[str, Any]]:
        return [message for message in self.said if message["type"] == kind and message["sessionId"] == session]

    def of(self, session: str) -> list[Frame]:
        """The frames of a session, whatever the channel."""
        channels = {
            event["channel"]
            for event in self.events
            if event["type"] == "session.attached" and event["sessionId"] == session
        }
        return [frame for frame in self.frames if frame.channel in channels]


@dataclass
class Window:
    hub: HubProcess
    context: BrowserContext
    page: Page
    wires: list[Wire] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, browser: Browser, hub: HubProcess, **options: Any) -> Window:
        """Nothing moves by itself, unless a test asks for it: drawing what turns takes a seventh of all the time."""
        usual: dict[str, Any] = {
            "viewport": {"width": 1280, "height": 800},
            "color_scheme": "dark",
            "reduced_motion": "reduce",
        }
        context = browser.new_context(**{**usual, **options})
        context.set_default_timeout(PATIENCE_MS)
        made = cls(hub, context, context.new_page())
        made.page.on("websocket", made._listen)
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        made.page.on("dialog", made._refuse)
        return made

    def _listen(self, socket: WebSocket) -> None:
        wire = Wire(errors=self.errors)
        self.wires.append(wire)
        socket.on("framereceived", wire.hear)
        socket.on("framesent", wire.say)

    def _refuse(self, dialog: Dialog) -> None:
        """The page opens none: one that opens is somebody else's script."""
        self.errors.append(dialog.message)
        dialog.dismiss()

    def close(self) -> None:
        if folder := os.environ.get("SHOTS"):
            os.makedirs(folder, exist_ok=True)
            name = re.sub(r"\W+", "-", os.environ.get("PYTEST_CURRENT_TEST", "page").split("::")[-1].split(" ")[0])
            self.page.screenshot(path=f"{folder}/{name}.png")
        self.context.close()

    # signing in -------------------------------------------------------------------------------------------------

    def link(self, **wish: Any) -> str:
        return self.hub.ask("POST", "/api/launch-code", wish or None)["launch_url"]

    def sign_in(self, **wish: Any) -> None:
        self.page.goto(self.link(**wish))
        expect(self.page.locator(".link.open")).to_be_attached()

    # the list and the tabs --------------------------------------------------------------------------------------

    def row(self, name: str) -> Locator:
        return self.page.locator(".row").filter(has=self.page.locator(".name", has_text=exactly(name)))

    def names(self) -> list[str]:
        return [name.strip() for name in self.page.locator(".row .name").all_text_contents()]

    def label(self, name: str) -> Locator:
        return self.row(name).locator(".label")

    def part(self, title: str) -> Locator:
        """A section of the list."""
        return self.page.locator(".part").filter(has=self.page.locator(".part-head .fold", has_text=exactly(title)))

    def unfold(self, title: str) -> None:
        self.part(title).locator(".part-head .fold[aria-expanded=false]").click()
        self.leave_list()

    def leave_list(self) -> None:
        """With the pointer: the list is held while it is there."""
        self.page.mouse.move(700, 4)

    def choose(self, name: str, word: str) -> None:
        """In the menu of a row."""
        self.row(name).click(button="right")
        self.page.get_by_role("menuitem", name=word, exact=True).click()
        self.leave_list()

    def set_view(self, label: str, value: str | bool) -> None:
        """What the menu of the list can set."""
        self.page.get_by_label("How to list").click()
        found = self.page.get_by_label(label, exact=True)
        if isinstance(value, str):
            found.select_option(value)
        else:
            found.set_checked(value)
        self.page.keyboard.press("Escape")
        self.leave_list()

    def tab(self, name: str) -> Locator:
        return self.page.locator(".tab").filter(has=self.page.locator(".tab-name", has_text=exactly(name)))

    def open_session(self, name: str) -> None:
        self.row(name).locator(".open-session").click()
        self.leave_list()
        expect(self.page.locator(".pane")).to_have_attribute("aria-label", name)

    # the terminal -----------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Locator:
        """What the terminal shows."""
        return self.page.locator(".pane .xterm-rows")

    def expect_shown(self, text: str | re.Pattern[str]) -> None:
        expect(self.rows).to_contain_text(text)

    def lines(self) -> list[str]:
        found = self.rows.locator("> div").all_text_contents()
        return [line.replace("\xa0", " ").rstrip() for line in found]

    def type(self, text: str) -> None:
        self.page.locator(".pane .xterm-helper-textarea").focus()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")


def exactly(text: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*{re.escape(text)}\s*$")


def colour(dot: Locator) -> str:
    return dot.evaluate("dot => getComputedStyle(dot).backgroundColor")


def style(place: Locator, name: str) -> str:
    return str(place.evaluate("(one, name) => getComputedStyle(one).getPropertyValue(name)", name))


def box(place: Locator) -> FloatRect:
    found = place.bounding_box()
    assert found is not None
    return found


def overlap(one: FloatRect, other: FloatRect) -> bool:
    return not (
        one["x"] + one["width"] <= other["x"]
        or other["x"] + other["width"] <= one["x"]
        or one["y"] + one["height"] <= other["y"]
        or other["y"] + other["height"] <= one["y"]
    )


__all__ = ["GAP", "OUTPUT", "SNAPSHOT", "Window", "Wire", "box", "colour", "expect", "overlap", "style"]
