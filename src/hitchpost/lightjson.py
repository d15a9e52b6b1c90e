"""JSON for processes that must stay small: the keeper holds one of these per run, for days.

The ``json`` package pulls in ``re`` and ``enum`` (1.2 MB per process); its two C functions alone cost 42 KB. What is
written here is plain JSON, and ``json`` reads it.
"""

from __future__ import annotations

from _json import encode_basestring_ascii, make_encoder, make_scanner

JSON = object
"""Any JSON value. Readers check what they got before they use it."""


class _Strict:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(name: str) -> object:
        raise ValueError(f"expected a JSON value, but got {name}")


_scan = make_scanner(_Strict())  # type: ignore[arg-type]
_SPACE = " \t\n\r"


def loads(text: str | bytes) -> object:
    """Parse one JSON value. Raises ``ValueError`` on anything else, trailing text included."""
    if isinstance(text, bytes):
        text = text.decode()
    text = text.strip(_SPACE)
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):
        # the scanner means json.JSONDecodeError and finds no such class, because nobody has imported it
        raise ValueError(f"expected a JSON value, but got {text[:40]!r}") from None
    except RecursionError:
        raise ValueError("expected a JSON value, but got one that is nested too deeply") from None
    if end != len(text):
        raise ValueError(f"expected the end of the JSON value, but got {text[end : end + 40]!r}")
    return value


def _refuse(value: object) -> object:
    raise TypeError(type(value).__name__)


_encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False)


def dumps(value: object) -> str:
    """``value`` as one line of ASCII. Raises ``ValueError`` on what JSON cannot say."""
    try:
        return "".join(_encode(value, 0))
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"expected a JSON value, but got {error}") from None
