"""A connection that is lost comes back by itself, and no byte is lost or shown twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.browser.windows import OUTPUT, SNAPSHOT, Window, expect
from tests.ground import Ground, Truth
from tests.hubs import HubProcess
from tests.support import eventually

COUNT = 'n=0; while read line; do n=$((n + 1)); echo "$n <$line>"; done'

NOTES = """() => {
    window.notes = [];
    new MutationObserver(() => {
        const note = document.querySelector(".size-note");
        if (note) window.notes.push(note.textContent);
    }).observe(document.body, { childList: true, subtree: true });
}"""


def shown_bytes(window: Window, session: Truth) -> bytes:
    """Every byte that came on any connection since the first snapshot, by its offset; none twice, none missing."""
    frames = [frame for wire in window.wires for frame in wire.of(session.id)]
    assert frames[0].kind == SNAPSHOT
    assert {frame.kind for frame in frames[1:]} == {OUTPUT}
    start = next_offset = frames[0].offset
    data = b""
    for frame in frames[1:]:
        assert frame.offset == next_offset
        data += frame.data
        next_offset += len(frame.data)
    assert session.output()[start:].startswith(data)
    return data


@pytest.mark.ids("F30", "F73")
def test_a_killed_hub_is_found_again_with_every_byte(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh(COUNT, name="dev")
    window = windows()
    window.sign_in()
    window.open_session("dev")
    window.type("one")
    window.expect_shown("1 <one>")
    port = int(hub.url.rpartition(":")[2])
    # nobody else looks at it, whatever becomes of its place while nobody hears how large that is
    window.page.evaluate(NOTES)
    hub.kill()
    expect(window.page.locator(".lost-link")).to_contain_text("lost")
    ground.hitch("send", "dev", "two")
    eventually(lambda: b"2 <two>" in dev.output())
    hub.start(port=port)
    expect(window.page.locator(".lost-link")).to_be_hidden()
    window.expect_shown("2 <two>")
    window.type("three")
    window.expect_shown("3 <three>")
    assert window.page.evaluate("window.notes") == []
    lines = [line for line in window.lines() if line]
    assert lines == ["one", "1 <one>", "two", "2 <two>", "three", "3 <three>"]
    assert shown_bytes(window, dev).endswith(b"3 <three>\r\n")
    assert len([wire for wire in window.wires if wire.of(dev.id)]) == 2
    ground.end(dev)


def test_a_run_that_began_while_the_page_was_away_goes_under_the_last(
    ground: Ground, hub: HubProcess, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh("echo hello from a run; read line; exit 1", name="dev")
    window = windows()
    window.sign_in()
    window.open_session("dev")
    window.expect_shown("hello from a run")
    port = int(hub.url.rpartition(":")[2])
    hub.kill()
    ground.hitch("send", "dev", "go")
    assert dev.ended() == "failed"
    ground.hitch("restart", "dev")
    hub.start(port=port)
    window.expect_shown("— run 2 —")
    eventually(lambda: window.lines().count("hello from a run") == 2)
    ground.end(dev)


def test_a_page_that_was_signed_out_is_let_in_by_a_link_in_another_tab(
    ground: Ground, windows: Callable[..., Window]
) -> None:
    dev = ground.begin_sh(COUNT, name="dev")
    window = windows()
    window.sign_in()
    window.open_session("dev")
    window.type("one")
    window.expect_shown("1 <one>")
    other = window.context.new_page()
    other.goto(window.hub.url)
    window.page.clock.install()
    refused: list[str] = []
    window.page.on("response", lambda answer: refused.append(answer.url) if answer.status == 401 else None)
    other.get_by_role("button", name="Sign out").click()
    expect(other.locator("main")).to_contain_text("hitch up prints a link")
    expect(window.page.locator(".lost-link")).to_contain_text("You are signed out. Run `hitch up` for a new link")
    window.expect_shown("1 <one>")
    for _ in range(5):
        window.page.clock.run_for(10_000)
    assert refused == [], "a page that is signed out asks nobody"
    other.goto(window.link())
    expect(window.page.locator(".lost-link")).to_be_hidden()
    window.page.bring_to_front()
    window.type("two")
    window.expect_shown("2 <two>")
    assert shown_bytes(window, dev).endswith(b"2 <two>\r\n")
    ground.end(dev)


KEEP_SOCKETS = """
    window.sockets = [];
    window.WebSocket = class extends WebSocket {
        constructor(...words) { super(...words); window.sockets.push(this); }
    };
"""

OPEN_SOCKETS = "count => sockets.length === count && sockets.at(-1).readyState === WebSocket.OPEN"


@pytest.mark.ids("F73")
def test_a_connection_that_breaks_is_repaired_by_itself(ground: Ground, windows: Callable[..., Window]) -> None:
    dev = ground.begin_sh(COUNT, name="dev")
    window = windows()
    window.context.add_init_script(KEEP_SOCKETS)
    window.sign_in()
    window.open_session("dev")
    for number, word in enumerate(("one", "two", "three"), 1):
        window.type(word)
        window.expect_shown(f"{number} <{word}>")
        window.page.evaluate("sockets.at(-1).close()")
        eventually(partial(window.page.evaluate, OPEN_SOCKETS, number + 1), what="the next connection")
        expect(window.page.locator(".link.open")).to_be_attached()
        expect(window.page.locator(".lost-link")).to_be_hidden()
    window.type("four")
    window.expect_shown("4 <four>")
    lines = [line for line in window.lines() if line]
    assert lines == ["one", "1 <one>", "two", "2 <two>", "three", "3 <three>", "four", "4 <four>"]
    assert shown_bytes(window, dev).endswith(b"4 <four>\r\n")
    ground.end(dev)
