"""What a real agent asks, in the page: it is shown, answered once, and a key in the terminal wins as well."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import ViewportSize

from tests.agents.conftest import agent_home, model
from tests.agents.driving import Driven
from tests.agents.homes import AgentHome
from tests.browser.test_barriers import AXE, EVERY_RULE, ONLY_COLOURS, PHONE, barriers
from tests.browser.windows import Window, expect
from tests.browser.windows import box as box_of
from tests.cli.own_agents import own_agent
from tests.ground import Ground
from tests.hubs import HubProcess
from tests.support import eventually
from tests.watched import say

__all__ = ["agent_home", "model"]
LONG_MS = 60_000
ESC = b"\x1b"
NAME = "a<b>" + "-and-on" * 25
IS_WHOLE = "one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight + 1"
SIDEWAYS: ViewportSize = {"width": 844, "height": 390}


def shot(window: Window, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        window.page.screenshot(path=f"{folder}/answers-{name}.png")


def late(hub: HubProcess, claude: Driven, request: str) -> int:
    """The status of an answer to something that was asked before."""
    with hub.http() as client:
        body = {"choice": "yes", "request": request, "message": ""}
        return client.post(f"/api/sessions/{claude.truth.id}/answer", json=body).status_code


@pytest.mark.timeout(300)
def test_a_permission_is_shown_and_answered_in_the_page(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window], agent_home: Callable[[str], AgentHome]
) -> None:
    home = agent_home("claude")
    ground.configure("[env]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in home.env.items()))
    claude = Driven.begin(ground, home, "--name", "dev")
    place = home.place
    window = windows()
    window.sign_in()
    page, row = window.page, window.row("dev")
    window.open_session("dev")
    expect(row.locator(".headline")).to_have_text("Your turn", timeout=LONG_MS)
    told = page.locator("#prompt-told")

    # a prompt, and what proved that it arrived
    before = box_of(page.locator(".terminal-box"))
    box = page.get_by_label("Prompt for dev")
    box.fill(f"[[bash touch '{NAME}']]")
    box.press("Enter")
    bar = page.locator(".headline-bar")
    # the agent's own report comes a moment before its hook: until then there is nothing to say yes to
    for asked in (row.locator(".answers"), bar.locator(".answers")):
        expect(asked).to_be_visible(timeout=LONG_MS)
    for shown in (row.locator(".headline"), bar.locator(".headline")):
        expect(shown.locator(".word")).to_have_text("Needs permission", timeout=LONG_MS)
        expect(shown.locator(".detail")).to_contain_text(f"Bash: touch '{NAME}'")
        expect(shown).to_have_attribute("title", re.compile(f"Needs permission: .*Bash: touch '{NAME}'"))
        # nobody says yes to half a question
        assert shown.evaluate(IS_WHOLE)
    assert box_of(page.locator(".terminal-box")) == before
    expect(told).to_have_text("Cannot take a prompt now: the agent is waiting for a permission")

    first = claude.asks()["request"]

    # nobody is kept out, and one who may only look sees the question without the buttons
    page.evaluate(AXE.read_text())
    expect(bar.get_by_role("button", name="Yes")).to_be_enabled()
    expect(page.locator(".tools .first")).to_have_count(0)
    found = barriers(page, "answers", EVERY_RULE)
    shot(window, "dark")
    page.emulate_media(color_scheme="light")
    found += barriers(page, "answers in light", ONLY_COLOURS)
    shot(window, "light")
    page.emulate_media(color_scheme="dark")
    looks = windows()
    looks.sign_in(role="viewer")
    expect(looks.row("dev").locator(".headline .word")).to_have_text("Needs permission")
    expect(looks.page.locator(".answers")).to_have_count(0)
    phone = windows(**PHONE)
    phone.sign_in()
    phone.page.evaluate(AXE.read_text())
    expect(phone.row("dev").get_by_role("button", name="No")).to_be_enabled()
    found += barriers(phone.page, "answers in the list of a phone", EVERY_RULE)
    shot(phone, "phone-list")
    phone.open_session("dev")
    expect(phone.page.locator(".headline-bar").get_by_label("Why not")).to_be_enabled()
    found += barriers(phone.page, "answers on a phone", EVERY_RULE)
    shot(phone, "phone")
    for size in (PHONE["viewport"], SIDEWAYS):
        phone.page.set_viewport_size(size)
        asked, why = phone.page.locator(".headline-bar .headline"), phone.page.get_by_label("Why not")
        assert asked.evaluate(IS_WHOLE)
        assert box_of(asked)["width"] > 200
        assert box_of(why)["x"] + box_of(why)["width"] <= size["width"]
    shot(phone, "phone-sideways")
    assert found == []

    # yes, in the list: the agent goes on, and the buttons are gone everywhere
    assert os.listdir(place) == []
    row.get_by_role("button", name="Yes").click()
    for everywhere in (window, phone):
        expect(everywhere.page.locator(".answers")).to_have_count(0)
    expect(row.locator(".headline .word")).to_have_text("Finished", timeout=LONG_MS)
    assert os.listdir(place) == [NAME]
    expect(told).to_have_text("Delivered (UserPromptSubmit)")
    shot(window, "finished")

    # no, above the terminal and with a reason
    box.fill("[[bash touch second]]")
    box.press("Enter")
    why = bar.get_by_label("Why not")
    expect(why).to_be_enabled(timeout=LONG_MS)
    why.fill("use the other file")
    bar.get_by_role("button", name="No").click()
    expect(page.locator(".answers")).to_have_count(0)
    expect(row.locator(".headline .word")).to_have_text("Finished", timeout=LONG_MS)
    assert "second" not in os.listdir(place)
    window.expect_shown("use the other file")

    # a key in the terminal wins, and the question is gone here too
    box.fill("[[bash touch third]]")
    box.press("Enter")
    expect(row.get_by_role("button", name="Yes")).to_be_enabled(timeout=LONG_MS)
    request = claude.asks()["request"]
    claude.leaves("blocked", ESC)
    expect(page.locator(".answers")).to_have_count(0)
    assert "third" not in os.listdir(place)
    assert late(hub, claude, request) == 409

    # after a crash the same line as ever, and what the click does
    claude.kill()
    end = page.locator(".end-bar")
    expect(end).to_have_text("Process killed by SIGKILL. Click to restart. The next run continues the conversation.")
    expect(page.locator(".tools").get_by_role("button", name="Resume")).to_be_visible()
    shot(window, "crash")
    conversation = claude.shown()["conversation"]
    end.click()
    expect(row.locator(".headline")).to_have_text("Your turn", timeout=LONG_MS)
    eventually(lambda: claude.shown()["run"] == 2)
    assert claude.shown()["conversation"] == conversation

    # an answer to what was asked in the first run is none to what is asked in the second
    claude.run_number = 2
    claude.send("[[bash touch fourth]]")
    assert claude.asks()["request"] not in (first, request)
    assert late(hub, claude, first) == 409
    claude.end()
    assert "fourth" not in os.listdir(place)


def test_what_an_agent_says_is_only_text_on_one_line(ground: Ground, window: Window) -> None:
    text = "<img src=x onerror=window.harm=1>\nsecond \u202e line"
    dev = ground.begin_sh(f"{say('blocked', ':kind=question', text)}exec sleep 1000", name="dev")
    headline = window.row("dev").locator(".headline")
    expect(headline).to_have_text("Question <img src=x onerror=window.harm=1> second line")
    assert window.page.evaluate("window.harm") is None
    box = headline.bounding_box()
    assert box is not None
    assert box["height"] < 30
    expect(window.row("dev").locator(".answers")).to_have_count(0)
    ground.end(dev)


def test_a_prompt_is_sent_anyway_once_and_only_to_what_was_shown(
    ground: Ground, hub: HubProcess, window: Window, windows: Callable[..., Window]
) -> None:
    asks, other = (say("blocked", ":kind=permission", text) for text in ("Bash: rm -r build", "Bash: rm -r src"))
    takes = 'read -r line; echo "<$line>"\n'
    script = f"stty -echo\n{asks}{takes}{other}{takes}{say('idle')}{takes}exec sleep 1000"
    dev = ground.begin_sh(script, name="dev")
    page = window.page
    window.open_session("dev")
    box, told = page.get_by_label("Prompt for dev"), page.locator("#prompt-told")
    anyway = page.locator(".prompt-box").get_by_role("button", name="Send anyway")
    question = page.get_by_role("dialog", name="Send to dev anyway?")
    yes = question.get_by_role("button", name="Send anyway")
    posted: list[object] = []
    page.on("request", lambda one: posted.append(one.post_data_json) if one.url.endswith("/prompt") else None)

    # whoever may only look is offered nothing, and nothing goes out without a yes
    expect(told).to_have_text("Cannot take a prompt now: the agent is waiting for a permission")
    expect(anyway).to_be_disabled()
    before = box_of(page.locator(".terminal-box"))
    page.evaluate(AXE.read_text())
    box.fill("no, the other one")
    anyway.click()
    expect(question).to_contain_text(
        "It is typed whatever the agent shows, which is now: Needs permission: Bash: rm -r build. "
        "It may answer a permission or a dialog."
    )
    assert barriers(page, "a question before a prompt is forced", EVERY_RULE) == []
    shot(window, "anyway")
    question.get_by_role("button", name="No, do not send").click()
    expect(question).to_have_count(0)
    expect(box).to_have_value("no, the other one")
    assert posted == []
    looks = windows()
    looks.sign_in(role="viewer")
    looks.open_session("dev")
    expect(looks.page.locator(".headline-bar .word")).to_have_text("Needs permission")
    expect(looks.page.get_by_role("button", name="Send anyway")).to_have_count(0)

    # a yes, however often it is clicked, is one
    anyway.click()
    yes.evaluate("one => { one.click(); one.click(); }")
    window.expect_shown("<no, the other one>")
    expect(box).to_have_value("")
    expect(page.locator(".notice")).to_have_text(
        "dev: typed, whatever it does with it (Needs permission: Bash: rm -r build); not confirmed"
    )
    assert posted == [{"text": "no, the other one", "images": [], "force": True}]
    detail = window.row("dev").locator(".headline .detail")
    expect(detail).to_have_text("Bash: rm -r src")
    assert box_of(page.locator(".terminal-box")) == before

    # what was asked has gone by then: an agent at its prompt gets an ordinary one
    box.fill("third")
    anyway.click()
    expect(question).to_contain_text("Needs permission: Bash: rm -r src")
    ground.hitch("send", "--force", "dev", "second")
    expect(window.row("dev").locator(".headline .word")).to_have_text("Your turn")
    yes.click()
    window.expect_shown("<third>")
    expect(anyway).to_have_count(0)
    assert posted[1:] == [{"text": "third", "images": []}]
    ground.end(dev)


def test_a_yes_to_send_anyway_is_none_to_what_the_agent_shows_by_then(ground: Ground, window: Window) -> None:
    asks, other = (say("blocked", ":kind=permission", text) for text in ("Bash: rm -r build", "Bash: rm -r src"))
    dev = ground.begin_sh(f"stty -echo\n{asks}read -r line\n{other}exec cat", name="dev")
    page = window.page
    window.open_session("dev")
    page.get_by_label("Prompt for dev").fill("yes")
    page.get_by_role("button", name="Send anyway").click()
    question = page.get_by_role("dialog", name="Send to dev anyway?")
    expect(question).to_contain_text("Bash: rm -r build")
    ground.hitch("send", "--force", "dev", "no")
    expect(window.row("dev").locator(".headline .detail")).to_have_text("Bash: rm -r src")
    posted: list[str] = []
    page.on("request", lambda one: posted.append(one.url) if one.url.endswith("/prompt") else None)
    question.get_by_role("button", name="Send anyway").click()
    expect(question).to_contain_text("Bash: rm -r src")
    assert posted == []
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    expect(page.get_by_label("Prompt for dev")).to_have_value("yes")
    assert posted == []
    ground.end(dev)


@pytest.mark.timeout(120)
def test_an_answer_that_comes_too_late_is_told(
    ground: Ground, hub: HubProcess, window: Window, agent_home: Callable[[str], AgentHome]
) -> None:
    claude = Driven.begin(ground, agent_home("claude"), "--name", "dev")
    claude.becomes("waiting")
    claude.send("[[bash touch asked]]")
    request = claude.asks()["request"]
    button = window.row("dev").get_by_role("button", name="No")
    expect(button).to_be_enabled()
    answers: list[dict[str, str]] = []

    def first(route: object) -> None:
        """Somebody else is faster than this page's own answer."""
        answers.append(route.request.post_data_json)  # type: ignore[attr-defined]
        claude.answer("yes")
        route.continue_()  # type: ignore[attr-defined]

    window.page.route("**/answer", first)
    button.click()
    expect(window.page.locator(".notice")).to_contain_text("dev: already answered.")
    assert answers == [{"choice": "no", "request": request, "message": ""}]
    claude.becomes("done")
    assert (claude.home.place / "asked").exists()
    claude.end()


FREE = """
[rules]
version = 1
[[screen]]
state = "blocked"
kind = "question"
find = ['^Which database\\?']
message = "Which database?"
takes_text = true
"""
READS = "stty -echo; printf 'Which database? '; read -r it; printf '\\033[2J\\033[Hfine'; "
READS += 'echo "$it" >got; exec sleep 1000'


def test_a_question_that_takes_text_has_a_field(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    own_agent(ground.place, "mine", READS, FREE)
    session = ground.made("run", "mine", "--json", "--name", "dev", "--workspace", str(ground.place))
    window, phone = windows(), windows(**PHONE)
    for everywhere in (window, phone):
        everywhere.sign_in()
        everywhere.page.evaluate(AXE.read_text())
        expect(everywhere.row("dev").get_by_label("Your answer")).to_be_enabled(timeout=LONG_MS)
    shot(phone, "text-phone-list")
    window.open_session("dev")
    field = window.page.locator(".headline-bar").get_by_label("Your answer")
    expect(field).to_be_enabled()
    expect(window.page.locator(".headline-bar").get_by_role("button", name="Answer")).to_be_disabled()
    found = barriers(window.page, "a field for an answer", EVERY_RULE)
    shot(window, "text-dark")
    window.page.emulate_media(color_scheme="light")
    found += barriers(window.page, "a field for an answer in light", ONLY_COLOURS)
    shot(window, "text-light")
    phone.open_session("dev")
    expect(phone.page.locator(".headline-bar").get_by_label("Your answer")).to_be_enabled()
    found += barriers(phone.page, "a field for an answer on a phone", EVERY_RULE)
    shot(phone, "text-phone")
    assert found == []
    field.fill("Postgres 17 <b>")
    field.press("Enter")
    assert ground.said("got") == "Postgres 17 <b>\n"
    for everywhere in (window, phone):
        expect(everywhere.page.locator(".answers")).to_have_count(0)
    ground.end(session)
