"""Sums of what agents have used."""

from __future__ import annotations

from hitchpost.model.usage import MOST_USD, NOTHING, Sum, Tokens, Turn, amount, came_to, summed


def turn(at: str, agent: str, tokens: Tokens, session: str = "a", model: str = "m") -> Turn:
    return Turn(at, session, "dev", agent, "/p", 1, model, tokens)


def test_tokens_are_added_and_a_cost_that_nobody_tells_is_no_zero() -> None:
    some, priced = Tokens(1, 2, 3, 4), Tokens(10, 20, 30, 40, 0.5)
    assert some + some == Tokens(2, 4, 6, 8)
    assert some + priced == Tokens(11, 22, 33, 44, 0.5)
    assert priced + priced == Tokens(20, 40, 60, 80, 1.0)
    assert (some + priced).total == 110


def test_what_came_since_is_never_less_than_nothing() -> None:
    assert Tokens(10, 20, 30, 40, 2.0) - Tokens(1, 2, 3, 4, 0.5) == Tokens(9, 18, 27, 36, 1.5)
    assert Tokens(1, 1, 1, 1, 1.0) - Tokens(2, 2, 2, 2) == Tokens(0, 0, 0, 0, 1.0)
    assert NOTHING - Tokens(5, 5, 5, 5, 5.0) == NOTHING


def test_an_amount_is_a_number_that_can_have_been_paid() -> None:
    assert [amount(0), amount(0.5), amount(3), amount(MOST_USD)] == [0.0, 0.5, 3.0, MOST_USD]
    odd = [True, None, "1", [1], -0.5, float("nan"), float("inf"), 10**400]
    assert [amount(each) for each in odd] == [None] * len(odd)


def test_a_sum_that_is_smaller_than_the_one_before_begins_anew() -> None:
    assert (came_to(1.5, 1.0), came_to(1.5, 1.5), came_to(0.25, 1.5)) == (0.5, 0.0, 0.25)


def test_two_models_in_one_turn_are_one_turn() -> None:
    turns = [
        turn("2026-11-18T01:00:00Z", "claude", Tokens(1), model="large"),
        turn("2026-11-18T01:00:00Z", "claude", Tokens(2), model="small"),
        turn("2026-11-18T02:00:00Z", "claude", Tokens(4)),
        turn("2026-11-18T02:00:00Z", "codex", Tokens(8)),
        turn("2026-11-18T02:00:00Z", "claude", Tokens(16), session="b"),
    ]
    assert summed(turns, lambda one: one.agent) == [Sum("claude", 3, Tokens(23)), Sum("codex", 1, Tokens(8))]
    assert summed([], lambda one: one.agent) == []
