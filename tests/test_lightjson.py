from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitchpost import lightjson

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5)
)


@given(values)
def test_what_is_written_here_is_read_the_same_by_json(value: object):
    assert json.loads(lightjson.dumps(value)) == value


@given(values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_what_json_writes_is_read_the_same_here(value: object, indent: int | str | None, ascii_only: bool):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert lightjson.loads(text) == value
    if "\\ud" in text or not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert lightjson.loads(text.encode()) == value


@given(values)
def test_a_value_comes_back_as_it_went(value: object):
    assert lightjson.loads(lightjson.dumps(value)) == value


@given(values)
def test_what_is_written_is_one_line_of_ascii(value: object):
    text = lightjson.dumps(value)
    assert text.isascii()
    assert "\n" not in text


@settings(max_examples=30)
@given(values)
def test_no_beginning_of_an_object_is_taken_for_a_whole_one(value: object):
    text = lightjson.dumps({"key": value})
    for length in range(len(text)):
        with pytest.raises(ValueError):
            lightjson.loads(text[:length])


@given(st.text(max_size=30) | st.binary(max_size=30))
def test_both_agree_about_what_is_no_json(text: str | bytes):
    """Apart from what ``json`` takes beyond the standard: NaN, Infinity, other encodings, a byte order mark."""
    try:
        value = lightjson.loads(text)
    except ValueError:
        return
    assert json.loads(text) == value


def test_a_tuple_is_written_as_a_list():
    assert lightjson.dumps((1, ("a", None))) == '[1, ["a", null]]'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {1, 2}, b"bytes", object()])
def test_what_json_has_no_word_for_is_refused(value: object):
    with pytest.raises(ValueError, match="expected a"):
        lightjson.dumps({"key": value})


@pytest.mark.parametrize(
    "text",
    ["", " ", "NaN", "Infinity", "-Infinity", "{} {}", "{}x", "[1,]", "{'a': 1}", '"\n"', "\ufeff{}"],
)
def test_what_is_not_one_json_value_is_a_value_error(text: str):
    with pytest.raises(ValueError):
        lightjson.loads(text)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "1" * 5000], ids=["lists", "objects", "digits"])
def test_what_is_too_deep_or_too_long_is_a_value_error(text: str):
    with pytest.raises(ValueError):
        lightjson.loads(text)


def test_bytes_that_are_not_utf_8_are_a_value_error():
    with pytest.raises(ValueError):
        lightjson.loads(b'"\xff"')


def test_reading_and_writing_pull_in_neither_json_nor_re():
    program = """
import sys
from hitchpost import lightjson
lightjson.loads(lightjson.dumps({"a": [1, 2.5, None, True, "ä"]}))
print([name for name in ("json", "re", "enum") if name in sys.modules])
"""
    argv = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({_source()!r})\n{program}"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "[]\n"


def _source() -> str:
    from pathlib import Path

    return str(Path(lightjson.__file__).parent.parent)
