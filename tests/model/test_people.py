"""People: names, roles, amounts, and what fits into a quota."""

from __future__ import annotations

import pytest

from hitchpost.errors import UsageError
from hitchpost.model.people import NO_QUOTA, Amounts, Person, Quota, QuotaReached, amount, checked_name, least, shown

GI = 2**30


@pytest.mark.parametrize(
    ("text", "value"), [("500m", 0.5), ("2", 2), ("1.5", 1.5), ("4Gi", 4 * GI), ("1k", 1000), ("0.5Gi", GI / 2)]
)
def test_amounts_are_as_kubernetes_writes_them(text: str, value: float) -> None:
    assert amount(text) == value


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("sessions", 3.0, 3),
        ("cpu", 2.0, 2),
        ("cpu", 0.5, 0.5),
        ("memory", 4 * GI, "4Gi"),
        ("memory", 1.5 * GI, "1.5Gi"),
        ("storage", 2000, "1.953Ki"),
        ("storage", 12, "12"),
    ],
)
def test_amounts_are_shown_in_the_largest_unit_that_fits(kind: str, value: float, text: object) -> None:
    assert shown(kind, value) == text


def test_what_does_not_fit_is_refused_with_what_is_used_and_what_is_allowed() -> None:
    quota = NO_QUOTA.changed({"sessions": 3, "cpu": "2", "memory": "8Gi"})
    used = Amounts(2, 1.5, 4 * GI, 100 * GI)
    quota.check("anna", used, Amounts(1, 0.5, 4 * GI, 10 * GI))
    with pytest.raises(QuotaReached) as refused:
        quota.check("anna", used, Amounts(1, 1, 8 * GI))
    told = "cpu: 1.5 used of 2, 1 more wanted; memory: 4Gi used of 8Gi, 8Gi more wanted"
    assert refused.value.message == f"anna would use more than is allowed: {told}"
    assert refused.value.http_status == 409
    quota.check("anna", Amounts(2, 50), Amounts(1))  # over a limit that this needs nothing of


def test_a_quota_is_written_and_read_again() -> None:
    quota = NO_QUOTA.changed({"sessions": "3", "cpu": "500m", "memory": "8Gi", "storage": "1.5Ti"})
    assert NO_QUOTA.changed(quota.shape()) == quota
    assert quota.changed({"cpu": "none", "sessions": None}) == Quota(memory=8 * GI, storage=1.5 * 2**40)


@pytest.mark.parametrize(
    ("kind", "text"), [("sessions", "many"), ("sessions", "1.5"), ("cpu", "-1"), ("memory", "8 GB"), ("cpu", True)]
)
def test_a_limit_that_is_none_says_what_is_expected(kind: str, text: object) -> None:
    with pytest.raises(UsageError, match=f"expected {kind} to be "):
        NO_QUOTA.changed({kind: text})


def test_names_are_small_letters_and_nobody_is_called_as_what_acts_by_itself() -> None:
    assert checked_name("Anna@Example.org") == "anna@example.org"
    for wrong in ("", " ", "a b", "-a", "a/b", "é", "a" * 101, "hub", "CLI", "keeper"):
        with pytest.raises(UsageError):
            checked_name(wrong)


def test_of_two_roles_the_one_that_may_do_less_counts() -> None:
    assert least("owner", "member") == least("member", "owner") == least("member", "member") == "member"
    assert least("viewer", "owner") == "viewer"


def test_amounts_are_added_and_told() -> None:
    used = Amounts(1, 0.5, 2 * GI) + Amounts(2, 1, 0, GI)
    assert used == Amounts(3, 1.5, 2 * GI, GI)
    assert used.shape() == {"sessions": 3, "cpu": 1.5, "memory": "2Gi", "storage": "1Gi"}


def test_a_person_is_told_with_the_limits_that_there_are() -> None:
    assert not NO_QUOTA.is_any
    quota = Quota(cpu=2)
    assert quota.is_any
    told = {"name": "anna", "role": "member", "quota": quota.shape(), "created_at": ""}
    assert Person("anna", "member", quota).shape() == told


@pytest.mark.parametrize("number", [-1, float("inf"), float("nan")])
def test_a_number_that_is_no_amount_is_refused(number: float) -> None:
    with pytest.raises(UsageError, match="expected cpu to be "):
        NO_QUOTA.changed({"cpu": number})
