"""Shell completion, in the shells themselves: bash, zsh and fish."""

from __future__ import annotations

import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitchpost.cli.completion import cut_at_cursor
from hitchpost.cli.group import COMMANDS
from tests.cli.places import new_session
from tests.ground import Ground
from tests.support import Hitch, eventually

SHELLS = ("bash", "zsh", "fish")
shells = pytest.mark.parametrize("shell", SHELLS)
PROMPT = "ready> "
START = {
    "bash": (
        ("bash", "--norc", "--noprofile", "-i"),
        "PS1='ready''> '; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; source {}",
    ),
    "zsh": (
        ("zsh", "-f", "-i"),
        "unsetopt PROMPT_SP; autoload -Uz compinit; compinit -u -D; source {}; PS1='ready''> '",
    ),
    "fish": (
        ("fish", "--no-config", "-i"),
        "source {}; set -g fish_autosuggestion_enabled 0; function fish_prompt; echo -n 'ready''> '; end",
    ),
}
"""How each shell is started, and what is typed first. The prompt is split, so that its echo is not taken for it."""


@pytest.fixture(autouse=True)
def command_on_path(monkeypatch: pytest.MonkeyPatch, leak_watch: object, home: Path) -> None:
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LANG", "C.UTF-8")


def script(hitch: Hitch, home: Path, shell: str) -> Path:
    path = home / f"completion.{shell}"
    path.write_text(hitch("completion", shell).out)
    return path


def offered(hitch: Hitch, shell: str, line: str, words: int | None = None) -> list[str]:
    """What the command answers the shell's script with, for the line that was typed."""
    place = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": ""},
        "zsh": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1 if words is None else words)},
        "fish": {"COMP_WORDS": line, "COMP_CWORD": line.split(" ")[-1]},
    }[shell]
    out = hitch(env={"_HITCH_COMPLETE": f"{shell}_complete", **place}).out
    if shell == "zsh":
        return [value.replace("\\:", ":") for value in out.splitlines()[1::3]]
    return [text.partition(",")[2].partition("\t")[0] for text in out.splitlines()]


class Typist:
    """A person at an interactive shell: types, and sees what the terminal shows."""

    def __init__(self, shell: str, folder: Path) -> None:
        argv, self.setup = START[shell]
        environment = {**Hitch.environment(), "TERM": "dumb" if shell == "fish" else "xterm", "INPUTRC": "/dev/null"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], argv, environment)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> None:
        def seen() -> bool:
            assert self.sees(text), repr(self.seen)
            return True

        eventually(seen, 60, what=f"{text!r} on the terminal")

    def sees(self, text: str) -> bool:
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                break
        return text in re.sub(r"\x1b\[[0-9;?=>]*[A-Za-z]|\x1b[()=>][0-9A-B]?|[\x00\x07\r]", "", self.seen)

    def forget(self) -> None:
        self.seen = ""


@contextmanager
def typing(shell: str, script: Path, folder: Path) -> Iterator[Typist]:
    typist = Typist(shell, folder)
    try:
        typist.type(typist.setup.format(script) + "\n")
        typist.wait_for(PROMPT)
        typist.forget()
        yield typist
    finally:
        os.kill(typist.pid, signal.SIGKILL)
        os.close(typist.fd)
        os.waitpid(typist.pid, 0)


@shells
def test_the_script_is_read_without_error_and_says_how_to_install_it(hitch: Hitch, home: Path, shell: str) -> None:
    path = script(hitch, home, shell)
    assert f"hitch completion {shell}" in path.read_text()
    load = "autoload -Uz compinit; compinit -u -D; " if shell == "zsh" else ""
    flags = {"bash": ("--norc",), "zsh": ("-f",), "fish": ("--no-config",)}[shell]
    done = subprocess.run(
        [shell, *flags, "-c", f"{load}source {path}"], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@shells
def test_click_s_own_way_to_get_the_script_gives_the_same_one(hitch: Hitch, shell: str) -> None:
    assert hitch(env={"_HITCH_COMPLETE": f"{shell}_source"}).out == hitch("completion", shell).out


def test_another_shell_is_a_usage_error(hitch: Hitch) -> None:
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in hitch("completion", "tcsh", check=2).err


@shells
def test_session_names_are_offered(ground: Ground, shell: str) -> None:
    for name in ("dev", "docs", "web"):
        new_session(ground.home, ground.place, name=name)
    assert offered(ground.hitch, shell, "hitch stop d") == ["dev", "docs"]
    assert offered(ground.hitch, shell, "hitch stop dev d") == ["dev", "docs"]
    assert offered(ground.hitch, shell, "hitch explain w") == ["web"]
    assert offered(ground.hitch, shell, "hitch doctor --show w") == ["web"]


@shells
def test_commands_options_and_agents_are_offered(hitch: Hitch, shell: str) -> None:
    assert offered(hitch, shell, "hitch ") == list(COMMANDS)
    assert offered(hitch, shell, "hitch exp") == ["explain"]
    assert "--json" in offered(hitch, shell, "hitch explain --")
    assert offered(hitch, shell, "hitch run cl") == ["claude", "claude-acp"]
    assert offered(hitch, shell, "hitch completion f") == ["fish"]


@shells
def test_names_with_control_characters_are_not_offered(ground: Ground, shell: str) -> None:
    new_session(ground.home, ground.place, name="bad\nplain,worse")
    new_session(ground.home, ground.place, name="bad\x1b[2J")
    new_session(ground.home, ground.place, name="best")
    assert offered(ground.hitch, shell, "hitch stop b") == ["best"]


@shells
def test_completion_of_a_home_that_cannot_be_used_offers_nothing_and_says_nothing(
    hitch: Hitch, home: Path, shell: str
) -> None:
    (home / "sessions").write_text("")
    answer = hitch(env={"_HITCH_COMPLETE": f"{shell}_complete", "COMP_WORDS": "hitch stop d", "COMP_CWORD": "2"})
    assert (answer.out.strip(), answer.err) == ("", "")


@shells
def test_completion_is_quick(ground: Ground, shell: str) -> None:
    new_session(ground.home, ground.place, name="dev")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(3):
        assert offered(ground.hitch, shell, "hitch stop d") == ["dev"]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # processor time: what the clock shows depends on what else the machine does
    used_s = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3
    assert used_s < 0.5


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hitch stop d", (["stop"], "d")),
        ("hitch stop ", (["stop"], "")),
        ("hitch stop  dev  ", (["stop", "dev"], "")),
        ("hitch", ([], "hitch")),
        (r"hitch stop my\ na", (["stop"], "my na")),
        (r"hitch stop my\ ", (["stop"], "my ")),
        ("hitch stop 'my na", (["stop"], "my na")),
        ('hitch stop "my ', (["stop"], "my ")),
        ("hitch stop a:b", (["stop"], "a:b")),
        ('hitch stop "', (["stop"], "")),
    ],
)
def test_the_word_at_the_cursor_is_found(line: str, expected: tuple[list[str], str]) -> None:
    assert cut_at_cursor(line) == expected


# In a real shell ------------------------------------------------------------------------------------------------


@shells
def test_tab_completes_a_session_name_in_a_real_shell(ground: Ground, shell: str) -> None:
    new_session(ground.home, ground.place, name="dev")
    with typing(shell, script(ground.hitch, ground.home, shell), ground.place) as typist:
        typist.type("hitch explain d\t")
        typist.wait_for("hitch explain dev")
        typist.type("\n")
        typist.wait_for("dev (session 1, id ")


HARD = (
    'my name\'s "one"',
    "$(touch pwned)`touch pwned`",
    "x;touch pwned|touch pwned&<>",
    "x\\y*[a]{b,c}?",
    "~root",
    "#x!!",
    "feat:k=v,",
    "日本 x",
)


@shells
@pytest.mark.timeout(300)
@pytest.mark.ids("S7")
def test_any_name_is_completed_as_one_word_and_nothing_in_it_is_run(ground: Ground, shell: str) -> None:
    """Each name is completed from nothing, being the only one, and the command is run with what came out."""
    (ground.place / "bystander").touch()
    with typing(shell, script(ground.hitch, ground.home, shell), ground.place) as typist:
        for number, name in enumerate(HARD):
            if shell == "fish" and name.startswith("~"):
                continue  # fish would not quote the tilde, so such a name is not offered
            session = new_session(ground.home, ground.place, name=name)
            typist.forget()
            typist.type("hitch explain \t")
            typist.type(f" --json > got.{number}; echo did''ne {number}\n")
            typist.wait_for(f"didne {number}")
            text = (ground.place / f"got.{number}").read_text()
            assert f'"id": "{session}"' in text, (name, typist.seen)
            ground.hitch("rm", session)
    assert sorted(path.name for path in ground.place.iterdir() if not path.name.startswith("got.")) == ["bystander"]


def test_fish_is_not_offered_a_name_that_it_would_take_for_a_home(ground: Ground) -> None:
    for name in ("~root", "dev"):
        new_session(ground.home, ground.place, name=name)
    ask = f"source {script(ground.hitch, ground.home, 'fish')}; complete -C 'hitch stop '"
    done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "dev\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("my\\ n", "my\\ name"),
        ('"my n', '"my name"'),
        ("'my n", "'my name'"),
        ("feat:l", "feat:login"),
        ("feat:", "feat:login"),
        ("k=", "k=v"),
    ],
)
def test_bash_completes_words_that_are_quoted_or_broken_by_a_colon(ground: Ground, typed: str, completed: str) -> None:
    for name in ("my name", "feat:login", "k=v"):
        new_session(ground.home, ground.place, name=name)
    with typing("bash", script(ground.hitch, ground.home, "bash"), ground.place) as typist:
        typist.type(f"hitch explain {typed}\t")
        typist.wait_for(f"hitch explain {completed}")


@shells
def test_tab_completes_a_file_in_a_real_shell(ground: Ground, shell: str) -> None:
    new_session(ground.home, ground.place, name="dev")
    (ground.place / "screen.png").touch()
    with typing(shell, script(ground.hitch, ground.home, shell), ground.place) as typist:
        typist.type("hitch send dev look --image scr\t")
        typist.wait_for("--image screen.png")
