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
from tests.ground import Ground


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
    expect(chat.locator(".permission-line")).to_have_text(re.compile("touch asked not answered"))
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
