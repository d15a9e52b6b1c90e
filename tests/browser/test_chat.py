"""The chat of an agent over ACP, in the page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.acp.sessions import begin
from tests.browser.test_barriers import AXE, EVERY_RULE, PHONE, barriers
from tests.browser.windows import Window, expect
from tests.ground import Ground


@pytest.mark.parametrize("size", [{}, PHONE], ids=["wide", "phone"])
def test_a_chat_from_the_first_prompt_to_an_interruption(
    ground: Ground, windows: Callable[..., Window], size: dict[str, object]
) -> None:
    dev = begin(ground)
    window = windows(**size)
    window.sign_in()
    page = window.page
    page.goto(f"{page.url.split('?')[0]}?session={dev.id}")
    chat = page.get_by_role("log", name="Chat with dev")
    expect(chat).to_contain_text("Nothing was said yet.")
    prompt = page.get_by_label("Prompt for dev")

    # markdown, and nothing of the agent's own HTML
    prompt.fill("hello")
    prompt.press("Enter")
    expect(chat.locator(".said-by-you")).to_have_text("hello")
    expect(chat.locator("strong")).to_have_text("bold")
    expect(chat.locator("pre code")).to_have_text("print(1)")
    expect(chat.locator("li")).to_have_text(["one", "two"])
    expect(chat.locator("img")).to_have_count(0)
    expect(chat).to_contain_text("<img src=x onerror=alert(1)>")

    # a tool, folded, with its difference and its output; a plan
    prompt.fill("tool")
    prompt.press("Enter")
    tool = chat.locator("details.tool")
    expect(tool).to_contain_text("make test completed")
    expect(tool.locator("pre").last).not_to_be_visible()
    tool.locator("summary").click()
    expect(tool.locator("pre")).to_have_text(["1", "2", "three tests pass"])
    expect(chat.get_by_role("list", name="Plan")).to_have_text("Run the tests")

    # a permission, answered where it is asked
    prompt.fill("ask")
    prompt.press("Enter")
    expect(chat.locator(".permission-line")).to_have_text(re.compile("touch asked not answered"))
    page.locator(".headline-bar").get_by_role("button", name=re.compile("Yes", re.IGNORECASE)).click()
    expect(chat.locator(".permission-line")).to_have_text(re.compile("touch asked yes"))
    expect(chat).to_contain_text('"optionId": "a"')

    # interrupted
    prompt.fill("wait")
    prompt.press("Enter")
    page.get_by_role("button", name="Interrupt").click()
    expect(chat.locator(".notice-line").last).to_have_text("Interrupted")

    # the terminal shows the same, and the chat is still there after a reload
    page.get_by_role("button", name="Terminal", exact=True).click()
    expect(chat).to_have_count(0)
    page.get_by_role("button", name="Chat", exact=True).click()
    page.reload()
    expect(chat.locator(".said-by-you")).to_have_text(["hello", "tool", "ask", "wait"])
    page.evaluate(AXE.read_text())
    assert barriers(page, "chat", EVERY_RULE) == []
    assert window.errors == []
    ground.end(dev)
