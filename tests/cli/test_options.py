"""Options as a table: the quick parser and click make the same of every command line that both understand."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitchpost.cli import run
from hitchpost.cli.options import FLAG, MANY, NUMBER, Option, as_click, parse
from tests.ground import Ground

OPTIONS = (
    Option("--name", "A name."),
    Option("--description", default=""),
    Option("--here", kind=FLAG),
    Option("--mount", kind=MANY, name="mounts"),
    Option("--cpus", kind=NUMBER, within=(0, 1024)),
    Option("--runtime", choices=("local", "tmux"), default="local"),
)
VALUES = ["", "-", "-h", "1.5", "local", "word"]
PLAIN = ["--name", "--here", "--mount", "--cpus", "--runtime", "--description", "--nam"]
JOINED = ["--name=x", "--name=", "--here=1", "--mount=a:b", "--cpus=2", "--cpus=x", "--runtime=tmux", "--runtime=pod"]
WORDS = st.sampled_from([*VALUES, *PLAIN, *JOINED])


def by_click(words: list[str]) -> tuple[dict[str, object], list[str]] | None:
    found: list[tuple[dict[str, object], list[str]]] = []

    def call(rest: tuple[str, ...], **values: object) -> None:
        found.append((values, list(rest)))

    for option in OPTIONS:
        call = as_click(option)(call)
    command = click.command()(click.argument("rest", nargs=-1)(call))
    try:
        command.main(words, standalone_mode=False)
    except click.UsageError:
        return None
    return found[0] if found else None


@given(st.lists(WORDS, max_size=6))
def test_what_the_quick_parser_understands_click_understands_alike(words: list[str]) -> None:
    quick = parse(OPTIONS, words)
    assert quick is None or quick == by_click(words)


def test_plain_command_lines_are_understood() -> None:
    values, rest = parse(OPTIONS, ["a", "--name", "x", "--mount", "1", "--mount=2", "--here", "--cpus", "2"]) or (
        {},
        [],
    )
    assert rest == ["a"]
    assert values == {
        "name": "x",
        "description": "",
        "here": True,
        "mounts": ("1", "2"),
        "cpus": 2.0,
        "runtime": "local",
    }


@pytest.mark.parametrize("words", [["--help"], ["--name"], ["--runtime", "moon"], ["a", "b"], ["--what"]])
def test_help_and_mistakes_are_left_to_click(words: list[str]) -> None:
    assert run.understood(words) is None


def test_everything_behind_two_dashes_is_the_command() -> None:
    options = run.understood(["claude", "--name", "dev", "--", "--model", "x", "--"])
    assert options is not None
    assert (options.agent, options.name, options.command) == ("claude", "dev", ("--model", "x", "--"))


def test_a_run_loads_neither_click_nor_what_it_brings(ground: Ground) -> None:
    """They take longer to load than Python itself, and a run needs none of them."""
    program = (
        "import sys; sys.argv = ['hitch', 'run', '--name', 'dev', '--', 'true']\n"
        "from hitchpost.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'click', 'inspect', 'dataclasses', 'typing', 're', 'json'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ground.place, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
