"""What a keeper does later."""

from __future__ import annotations

from hitchpost.keeper.timers import Timers


def run(timers: Timers, now: float) -> None:
    for call in timers.due(now):
        call(now)


def test_each_is_called_once_when_its_moment_has_come() -> None:
    timers, called = Timers(), list[tuple[str, float]]()
    assert timers.next_in_s(5.0) == -1
    timers.at("b", 2.0, lambda now: called.append(("b", now)))
    timers.at("a", 1.0, lambda now: called.append(("a", now)))
    assert timers.next_in_s(0.25) == 0.75
    run(timers, 0.5)
    assert called == []
    run(timers, 1.5)
    run(timers, 1.5)
    assert called == [("a", 1.5)]
    assert ("a" in timers, "b" in timers) == (False, True)
    assert timers.next_in_s(9.0) == 0.0


def test_one_that_is_due_may_be_cancelled_by_another() -> None:
    timers, called = Timers(), list[float]()
    timers.at("drain", 1.0, lambda now: timers.cancel("folder", "activity"))
    timers.at("folder", 1.0, called.append)
    run(timers, 2.0)
    assert called == []
    assert timers.next_in_s(2.0) == -1


def test_one_that_is_due_may_be_put_off_by_another_and_by_itself() -> None:
    timers, called = Timers(), list[float]()

    def again(now: float) -> None:
        called.append(now)
        timers.at("again", now, again)
        timers.at("other", now + 1, called.append)

    timers.at("again", 1.0, again)
    timers.at("other", 1.0, called.append)
    run(timers, 2.0)
    assert called == [2.0]
    run(timers, 3.0)
    assert called == [2.0, 3.0, 3.0]
