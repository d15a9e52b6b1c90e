"""What is said: one event, several at once, and nothing that an agent's text could break."""

from __future__ import annotations

from hitchpost.notify.message import LONGEST_LINE, LONGEST_TITLE, compose, plain
from hitchpost.notify.news import News, is_seen, of_session

PAGE = "https://hub.example.org/"


def news(session: str, headline: str = "Needs permission", detail: str = "rm -r build") -> News:
    return News(session, f"name {session}", 1, "permission", headline, detail, "2026-05-04T12:00:00Z")


def test_one_event_has_its_session_headline_detail_and_a_link_to_it() -> None:
    message = compose([news("k3v9q0x2m7ab")], PAGE)
    assert (message.title, message.body) == ("name k3v9q0x2m7ab: Needs permission", "rm -r build")
    assert message.link == "https://hub.example.org/?session=k3v9q0x2m7ab"
    assert (message.session, message.kind, message.is_urgent) == ("k3v9q0x2m7ab", "permission", True)


def test_several_are_counted_and_the_first_are_named() -> None:
    message = compose([news("a"), news("b", "Finished", ""), *(news(str(n), "Finished", "") for n in range(6))], PAGE)
    assert message.title == "8 sessions: 1 × Needs permission, 7 × Finished"
    lines = message.body.splitlines()
    assert lines[:2] == ["name a: Needs permission · rm -r build", "name b: Finished"]
    assert lines[5:] == ["and 3 more"]
    assert (message.link, message.session) == (PAGE, "")


def test_an_agents_text_is_one_line_without_control_characters_and_not_long() -> None:
    nasty = "a\r\nX-Evil: 1\x1b]9;boo\x07 \u202egnp.exe\u2069 b"
    assert plain(nasty) == "a X-Evil: 1 ]9;boo gnp.exe b"
    message = compose([News("s", "n" * 500, 1, "failed", "Failed", nasty + "x" * 10000, "")], PAGE)
    assert len(message.title) <= LONGEST_TITLE
    assert len(message.body) == LONGEST_LINE
    assert message.title.isprintable()
    assert message.body.isprintable()


def shape(**changed: object) -> dict[str, object]:
    usual: dict[str, object] = {
        "id": "s",
        "name": "dev",
        "run": 2,
        "rank": 4,
        "status": "failed",
        "headline": "Failed",
        "detail": "exit 1",
        "since": "2026-05-04T12:00:00.5Z",
        "seen_at": None,
    }
    return usual | changed


def test_ranks_one_to_five_are_news() -> None:
    assert of_session(shape()) == News("s", "dev", 2, "failed", "Failed", "exit 1", "2026-05-04T12:00:00.5Z", True)
    kinds = [found and found.kind for found in (of_session(shape(rank=rank)) for rank in range(1, 10))]
    assert kinds == ["permission", "your-turn", "error", "failed", "finished", None, None, None, None]


def test_the_end_of_a_run_is_one_event_whatever_its_time_and_a_report_is_one_for_each_time() -> None:
    def key(**changed: object) -> str:
        found = of_session(shape(**changed))
        assert found is not None
        return found.key

    later = {"since": "2026-05-04T12:00:00.6Z"}
    assert key() == key(**later)
    assert key() != key(run=3)
    assert key(status="running", rank=1) != key(status="running", rank=1, **later)


def test_seen_is_a_look_after_the_headline_began() -> None:
    assert not is_seen(shape())
    assert not is_seen(shape(seen_at="2026-05-04T12:00:00.4Z"))
    assert is_seen(shape(seen_at="2026-05-04T12:00:00.500000Z"))
    assert not is_seen(shape(seen_at="2026-05-04T12:00:00Z", since=None))
