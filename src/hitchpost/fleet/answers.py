"""What a pod answers, as what the same look gives on one machine; what it refuses, as the same error."""

from __future__ import annotations

from typing import Any

from hitchpost.errors import MALFORMED, HitchpostError
from hitchpost.workspaces.diff import Difference, File


class RefusedInPod(HitchpostError):
    """Raised with the words, the code and the status of the error that was raised in the pod."""

    def __init__(self, answer: dict[str, Any]) -> None:
        message = str(answer.get("message") or answer.get("error") or "the pod did not say why")
        super().__init__(message, str(answer.get("hint") or ""), field=str(answer.get("field") or ""))
        self.code = str(answer.get("code") or self.code)
        self.http_status = _number(answer.get("http_status"), self.http_status)
        self.exit_code = _number(answer.get("exit_code"), self.exit_code)


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    """Raises ``RefusedInPod``."""
    if answer.get("ok") is not True:
        raise RefusedInPod(answer)
    return answer


def difference(answer: dict[str, Any]) -> Difference:
    """Of the request ``diff``. Raises ``RefusedInPod``."""
    told = checked(answer)
    try:
        patch, stat = (str(told[name]).encode("utf-8", "surrogateescape") for name in ("patch", "stat"))
        files = tuple(File(**file) for file in told["files"])
        base, head, branch = (None if told[name] is None else str(told[name]) for name in ("base", "head", "branch"))
        return Difference(base, head, branch, files, patch, stat, told["cut"] is True)
    except MALFORMED as error:
        raise RefusedInPod({"error": f"the pod's difference cannot be read: {error}"}) from None


def counts(answer: dict[str, Any]) -> tuple[int, int, int] | None:
    """Of the request ``changes``: files, lines added and lines deleted; None when nobody knows."""
    told = checked(answer).get("counts")
    if not isinstance(told, list) or len(told) != 3 or not all(isinstance(number, int) for number in told):
        return None
    return told[0], told[1], told[2]


def rows(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Of the request ``explain``."""
    told = checked(answer).get("rows")
    return [(str(row[0]), str(row[1]), str(row[2])) for row in told or [] if isinstance(row, list) and len(row) == 3]


def _number(told: object, otherwise: int) -> int:
    return told if isinstance(told, int) and 0 < told < 600 else otherwise
