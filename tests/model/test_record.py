from __future__ import annotations

import pytest

from hitchpost.errors import UsageError
from hitchpost.model import record
from tests.model.made import RECORDS

EVERY_CHANGE = [(old, new) for old in RECORDS for new in RECORDS]
ALLOWED = [(old, new) for old, new in EVERY_CHANGE if new in record.RECORD_TRANSITIONS[old]]
REFUSED = [pair for pair in EVERY_CHANGE if pair not in ALLOWED]


@pytest.mark.ids("D-1", "D-8", "D-12")
def test_a_record_has_four_states_of_which_only_error_is_final() -> None:
    assert record.RECORD_TRANSITIONS == {
        "active": ("suspended", "archived", "error"),
        "suspended": ("active", "archived", "error"),
        "archived": ("suspended",),
        "error": (),
    }


@pytest.mark.ids("D-1")
@pytest.mark.parametrize(("old", "new"), ALLOWED)
def test_a_record_may_change_along_its_map(old: str, new: str) -> None:
    record.check_record(old, new)


@pytest.mark.ids("D-12")
@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_any_other_change_of_a_record_is_refused_by_an_error_that_names_both_states(old: str, new: str) -> None:
    with pytest.raises(record.InvalidRecordChange) as refusal:
        record.check_record(old, new)
    error = refusal.value
    assert (error.old, error.new) == (old, new)
    assert (f"is {old} already" if old == new else f"is {old} cannot become {new};") in str(error)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("active", "active", "the record is active already; it can become suspended or archived or error"),
        ("archived", "active", "a record that is archived cannot become active; it can become suspended"),
        ("archived", "archived", "the record is archived already; it can become suspended"),
        ("paused", "active", "a record that is paused cannot become active; it stays as it is"),
    ],
)
def test_the_refusal_says_what_would_have_been_possible(old: str, new: str, text: str) -> None:
    with pytest.raises(record.InvalidRecordChange) as refusal:
        record.check_record(old, new)
    assert str(refusal.value) == text


@pytest.mark.ids("D-6")
def test_the_list_and_the_badge_show_active_and_suspended_records() -> None:
    assert record.LISTED == ("active", "suspended")


@pytest.mark.ids("D-4", "D-6")
def test_only_an_active_record_takes_input() -> None:
    assert record.TAKES_INPUT == ("active",)


@pytest.mark.ids("D-4")
def test_the_notes_are_those_of_the_seed() -> None:
    assert record.NOTES == {
        "active": "",
        "suspended": "may be resumable when agent supports it",
        "archived": "Session is archived",
        "error": "",
    }


@pytest.mark.ids("D-7", "X15")
def test_the_words_of_the_five_state_model_have_become_active_and_archived() -> None:
    assert record.FORMER_WORDS == {"completed": "active", "cancelled": "archived"}


@pytest.mark.ids("D-7")
@pytest.mark.parametrize(
    ("texts", "everything", "chosen"),
    [
        ((), False, ("active", "suspended")),
        ((), True, ("active", "suspended", "archived", "error")),
        (("archived",), False, ("archived",)),
        (("error, active", "archived"), True, ("active", "archived", "error")),
    ],
)
def test_a_list_has_the_records_that_are_named_else_the_usual_ones(
    texts: tuple[str, ...], everything: bool, chosen: tuple[str, ...]
) -> None:
    assert record.chosen(texts, everything=everything) == chosen


def test_a_word_that_names_no_record_is_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        record.chosen(("active,gone",))
    assert str(refusal.value) == "expected a record to be one of active, suspended, archived, error, but got 'gone'"
