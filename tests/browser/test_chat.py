"""The chat of an agent over ACP, in the page."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256

import pytest
from playwright.sync_api import Page

from tests.acp.pictures import png
from tests.acp.sessions import begin, let_go
from tests.browser.test_barriers import AXE, EVERY_RULE, PHONE, barriers
from tests.browser.windows import Window, expect
from tests.cli.own_agents import describe
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually


@pytest.mark.parametrize("size", [{}, PHONE], ids=["wide", "phone"])
def test_a_chat_from_the_first_prompt_to_an_interruption(
    ground: Ground, windows: Callable[..., Window], size: dict[str, object]
) -> None:
    takes_images = size is not PHONE
    dev = begin(ground, images=takes_images)
    window = windows(**size, permissions=["clipboard-read", "clipboard-write"])
    window.sign_in()
    page = window.page
    page.goto(f"{page.url.split('?')[0]}?session={dev.id}")
    chat = page.get_by_role("log", name="Chat with dev")
    expect(chat).to_contain_text("Nothing was said yet.")
    prompt = page.get_by_label("Prompt for dev")

    def say(text: str) -> None:
        prompt.fill(text)
        prompt.press("Enter")
        expect(prompt).to_have_value("")

    # markdown, and nothing of the agent's own HTML
    say("hello")
    expect(chat.locator(".said-by-you")).to_have_text("hello")
    expect(chat.locator("strong")).to_have_text("bold")
    expect(chat.locator("pre code")).to_have_text("print(1)")
    expect(chat.locator("li")).to_have_text(["one", "two"])
    expect(chat.locator("img")).to_have_count(0)
    expect(chat).to_contain_text("<img src=x onerror=alert(1)>")

    # a tool, folded, with its difference and its output; a plan
    say("tool")
    tool = chat.locator("details.tool")
    expect(tool).to_contain_text("make test completed")
    expect(tool.locator("pre").last).not_to_be_visible()
    tool.locator("summary").click()
    expect(tool.locator("pre")).to_have_text(["1", "2", "three tests pass"])
    expect(chat.get_by_role("list", name="Plan")).to_have_text("Run the tests")

    # a permission, answered where it is asked
    say("ask")
    expect(chat.locator(".permission-line")).to_have_text(re.compile("touch asked no answer yet"))
    page.locator(".headline-bar").get_by_role("button", name=re.compile("Yes", re.IGNORECASE)).click()
    expect(chat.locator(".permission-line")).to_have_text(re.compile("touch asked yes"))
    expect(chat).to_contain_text('"optionId": "a"')

    # interrupted
    say("wait")
    page.get_by_role("button", name="Interrupt").click()
    expect(chat.locator(".notice-line").last).to_have_text("Interrupted")

    # images: pasted and dropped, or refused
    told = page.locator("#prompt-told")
    page.evaluate(COPY, b64encode(png(190, 60, 60)).decode())
    prompt.press("Control+v")
    if takes_images:
        thumbnails = page.get_by_role("list", name="Images of the prompt").get_by_role("img")
        expect(thumbnails).to_have_count(1)
        drop(page, "image/svg+xml", b"<svg>")
        expect(told).to_have_text("Only PNG, JPEG, GIF and WebP images can be sent.")
        drop(page, "image/png", png(60, 60, 190) + bytes(3 << 20))
        expect(told).to_have_text("The images of a prompt have at most 2.5 MB together.")
        drop(page, *(("image/png", png(60, 60, 190)) * 4))
        expect(told).to_have_text("At most 4 images go with a prompt.")
        drop(page, "image/png", png(60, 60, 190), "image/png", png(60, 190, 60))
        expect(thumbnails).to_have_count(3)
        page.get_by_role("button", name="Remove image 2").click()
        say("look")
        expect(chat.locator(".said-by-you").last.locator("img")).to_have_count(2)
        expect(thumbnails).to_have_count(0)
        expect(chat.locator(".markdown").last).to_contain_text(sha256(png(60, 190, 60)).hexdigest()[:8])
        expect(chat.locator(".markdown").last).to_contain_text(
            re.compile("image image/png .*image image/png", re.DOTALL)
        )
    else:
        expect(told).to_have_text("This agent takes no images.")
        say("look")

    # while it works, prompts wait; what is taken back is in the field again
    say("hold")
    expect(chat.locator(".markdown").last).to_have_text("I hold")
    queued = chat.locator(".queued")
    for text in ("this is taken back", "next"):
        say(text)
        expect(told).to_have_text("Queued: the agent gets it when it is done")
    expect(queued).to_have_text([re.compile("this is taken back ?Queued"), re.compile("next ?Queued")])
    page.evaluate(AXE.read_text())
    assert barriers(page, "queue", EVERY_RULE) == []
    shot(page, "queue", size)
    queued.first.get_by_role("button", name="Take back").click()
    expect(queued).to_have_count(1)
    expect(prompt).to_have_value("this is taken back")
    prompt.fill("")

    # the terminal shows the same; the chat and what waits are still there after a reload, and it is sent once
    page.get_by_role("button", name="Terminal", exact=True).click()
    expect(chat).to_have_count(0)
    page.get_by_role("button", name="Chat", exact=True).click()
    page.reload()
    expect(queued).to_have_text([re.compile("next ?Queued")])
    let_go(ground)
    expect(queued).to_have_count(0)
    said = chat.locator(".said-by-you")
    expect(said).to_have_text(["hello", "tool", "ask", "wait", "look", "hold", "next"])
    expect(said.nth(4).locator("img")).to_have_count(2 if takes_images else 0)
    page.evaluate(AXE.read_text())
    assert barriers(page, "chat", EVERY_RULE) == []

    # what waits when it is interrupted is not sent, and can be edited
    say("wait")
    expect(chat.locator(".markdown").last).to_have_text("I am waiting")
    say("never mind")
    expect(queued).to_have_count(1)
    page.get_by_role("button", name="Interrupt").click()
    unsent = chat.locator(".unsent")
    expect(unsent).to_have_text(re.compile("never mind ?Not sent"))
    unsent.get_by_role("button", name="Edit").click()
    expect(prompt).to_have_value("never mind")

    # what all that has used: of the session, and of all by day, agent and project
    page.get_by_role("button", name="Timeline", exact=True).click()
    expect(page.locator(".session-usage")).to_contain_text(re.compile(r"\d+ turns · \d+ in, 0 cached, \d+ out tokens"))
    shot(page, "timeline", size)
    page.get_by_role("button", name="All usage").click()
    usage = page.get_by_role("dialog", name="Usage")
    expect(usage.locator("tbody th")).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d$"))
    usage.get_by_text("Agent", exact=True).click()
    expect(usage.locator("tbody th")).to_have_text("scripted-acp")
    expect(page).to_have_url(re.compile(r"[?&]usage=agent"))
    usage.get_by_text("Project", exact=True).click()
    where = ground.ps(dev)["workspace"]
    expect(usage.locator("tbody th")).to_have_attribute("title", where["repository"] or where["path"])
    assert barriers(page, "usage", EVERY_RULE) == []
    shot(page, "usage", size)
    page.keyboard.press("Escape")
    expect(usage).to_have_count(0)
    assert window.errors == []
    ground.end(dev)


def test_a_chat_goes_on_where_it_was_after_the_hub_was_killed(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    dev = begin(ground)
    window = windows()
    window.sign_in()
    page = window.page
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if "/chat" in request.url else None)
    page.goto(f"{page.url.split('?')[0]}?session={dev.id}")
    chat = page.get_by_role("log", name="Chat with dev")
    expect(chat).to_contain_text("Nothing was said yet.")
    page.get_by_label("Prompt for dev").fill("tool")
    page.get_by_label("Prompt for dev").press("Enter")
    expect(chat.locator(".markdown")).to_have_text("all done")

    port = int(hub.url.rpartition(":")[2])
    hub.kill()
    expect(page.locator(".lost-link")).to_contain_text("lost")
    ground.hitch("send", "dev", "hello")
    eventually(lambda: ground.ps(dev)["attention"] == "done", what="the end of the turn")
    hub.start(port=port)
    expect(chat.locator(".said-by-you")).to_have_text(["tool", "hello"])
    expect(chat.locator(".markdown")).to_have_count(2)
    expect(chat.locator(".tool")).to_have_count(1)

    # what was read is there at once when one comes back, and only the rest is asked for
    page.locator(".brand").click()
    expect(chat).to_have_count(0)
    ground.hitch("send", "dev", "tool")
    window.open_session("dev")
    expect(chat.locator(".said-by-you")).to_have_text(["tool", "hello", "tool"])
    begins = [asked["from"] for wire in window.wires for asked in wire.asked("chat.follow", dev.id)]
    assert begins == sorted(begins)
    assert begins.count(0) == 1
    parts = [event for wire in window.wires for event in wire.events if event["type"] == "chat.lines"]
    prompts = [line["text"] for part in parts for line in part["lines"] if line["type"] == "user"]
    assert prompts == ["tool", "hello", "tool"]
    assert not any(frame for wire in window.wires for frame in wire.of(dev.id))  # of a terminal that nobody looks at
    assert fetched == []
    ground.end(dev)


TYPED = """
title = "Typed"
argv = ["{program}"]
adapter = "rules"
conversations = "scripted-acp"
ready_after_s = 0.05
[conversation]
resume = ["--resume={{id}}"]
[rules]
version = 1
[[screen]]
state = "idle"
find = ['^typed> $']
"""
"""An agent in a terminal that shares the conversations of the one over ACP."""


@pytest.mark.parametrize("size", [{}, PHONE], ids=["wide", "phone"])
def test_a_session_is_handed_over_to_its_terminal_and_back_and_waits_out_limits(
    ground: Ground, windows: Callable[..., Window], size: dict[str, object]
) -> None:
    program = ground.place / "typed"
    program.write_text("#!/bin/sh\necho \"typed with $*\"; printf 'typed> '; exec cat\n")
    program.chmod(0o755)
    describe("scripted-typed", TYPED.format(program=program))
    dev = begin(ground)
    window = windows(**size)
    window.sign_in()
    page = window.page
    page.goto(f"{page.url.split('?')[0]}?session={dev.id}")
    chat = page.get_by_role("log", name="Chat with dev")
    more = page.get_by_label("More for dev")
    entry = page.locator(".toolbar .menu-items button")

    # without a turn there is nothing to hand over, but limits can be waited out
    more.click()
    expect(entry.filter(has_text="Wait out usage limits")).to_be_visible()
    expect(entry.filter(has_text="Hand over")).to_have_count(0)
    shot(page, "menu", size)
    entry.filter(has_text="Wait out usage limits").click()
    eventually(lambda: ground.ps(dev)["when_limit"] == "wait", what="the choice")
    prompt = page.get_by_label("Prompt for dev")
    prompt.fill("limit in 2 hours")
    prompt.press("Enter")
    expect(page.locator(".headline-bar")).to_contain_text("the hub goes on then")

    # the usage says who is at a limit, and leads there
    page.goto(f"{page.url.split('?')[0]}?usage=day")
    limits = page.get_by_role("dialog", name="Usage").get_by_role("region", name="At a usage limit now")
    expect(limits.get_by_role("listitem")).to_contain_text("the hub goes on then")
    shot(page, "limits", size)
    steps = page.evaluate("history.length")
    limits.get_by_role("button", name="dev").click()
    expect(page.get_by_role("dialog", name="Usage")).to_have_count(0)
    assert page.evaluate("history.length") == steps, "the dialog is no step of the way back"
    expect(page.locator(".pane")).to_have_attribute("aria-label", "dev")

    more.click()
    entry.filter(has_text="Stop at usage limits").click()
    expect(page.locator(".headline-bar")).not_to_contain_text("the hub goes on then")
    assert ground.ps(dev)["when_limit"] == "stop"

    # what is wrong stands in the chat; the button leads to the answer
    page.get_by_role("button", name="Reply").click()
    expect(prompt).to_be_focused()
    expect(page.locator("[data-action=look]")).to_have_count(1)

    # it lives, so it is asked first
    more.click()
    expect(entry.filter(has_text="Search the terminal")).to_have_count(0)
    expect(entry.filter(has_text=re.compile("^Hand over"))).to_have_text(["Hand over to Twin…", "Hand over to Typed…"])
    page.evaluate(AXE.read_text())
    assert barriers(page, "menu", EVERY_RULE) == []
    shot(page, "hand-over", size)
    entry.filter(has_text="Typed").click()
    question = page.get_by_role("dialog", name="Hand dev over to Typed?")
    expect(question).to_contain_text("Typed then goes on with the conversation, in its terminal.")
    shot(page, "hand-over-question", size)
    question.get_by_role("button", name="Hand over").click()
    expect(chat).to_have_count(0)
    window.expect_shown("typed with --resume=talk-0")
    shot(page, "handed-over", size)
    assert ground.ps(dev)["agent"] == "scripted-typed"

    # one that has ended is handed over at once; what was said before is still there
    ground.hitch("stop", "dev")
    more.click()
    entry.filter(has_text=re.compile("^Hand over to Scripted$")).click()
    expect(chat.locator(".said-by-you")).to_have_text("limit in 2 hours")
    expect(chat.locator(".notice-line").last).to_have_text("it goes on with its conversation (session/resume)")
    prompt.fill("remember")
    prompt.press("Enter")
    expect(chat.locator(".markdown")).to_have_text("limit in 2 hours")
    assert (ground.ps(dev)["agent"], ground.ps(dev)["run"]) == ("scripted-acp", 3)

    # Ctrl-K offers it, too
    if not size:
        page.keyboard.press("Control+k")
        page.keyboard.type("hand over twin")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name="Hand dev over to Twin?")).to_be_visible()
        page.keyboard.press("Escape")
    ground.end(dev)


COPY = """
async (data) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const blob = new Blob([bytes], { type: "image/png" });
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
}
"""

DROP = """
(files) => {
    const data = new DataTransfer();
    for (const [type, text] of files) {
        const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        data.items.add(new File([bytes], "a file", { type }));
    }
    const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
    document.querySelector(".prompt-box textarea").dispatchEvent(event);
}
"""


def drop(page: Page, *files: str | bytes) -> None:
    """Types and bytes, in turns."""
    types, contents = files[::2], [b64encode(data).decode() for data in files[1::2] if isinstance(data, bytes)]
    page.evaluate(DROP, list(zip(types, contents, strict=True)))


def shot(page: Page, name: str, size: dict[str, object]) -> None:
    if folder := os.environ.get("SHOTS"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{'phone' if size else 'wide'}-{scheme}.png")
