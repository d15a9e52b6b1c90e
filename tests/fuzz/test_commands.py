"""Every command in every state of a session ends with an exit code that means something, and never with a traceback."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fuzz.commands import ELSEWHERE, STARTS_OTHERS, leaves, plain, takes_session, variations
from tests.fuzz.states import ENDED, LIVING, States
from tests.ground import Ground
from tests.support import Answer, Hitch

LONG = "LONG" in os.environ
"""Set by ``script/faults --long``."""
CODES = (0, 1, 2, 3, 4, 5, 130)
SAID_ON_OUTPUT = ("doctor", "wait", "workspace")
"""What they found out is their answer, and the exit code too."""
DEEDS = ("stop", "restart", "resume", "cancel", "archive", "rm", "rm -f", "send", "explain", "logs", "diff", "attach")

COMMANDS = [(path, command) for path, command in leaves() if " ".join(path) not in STARTS_OTHERS]
OF_SESSIONS = [(path, command) for path, command in COMMANDS if takes_session(command)]


@pytest.fixture(autouse=True)
def nothing_to_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield


class Wrong(list[str]):
    """What commands did that they must not do."""

    def judge(self, state: str, answer: Answer) -> None:
        text = f"in state {state}: {answer}"
        if answer.code not in CODES:
            self.append(f"exit code {answer.code} {text}")
        if "Traceback" in answer.out + answer.err or "internal error" in answer.err:
            self.append(f"a traceback {text}")
        told = any(line.startswith("hitch: ") for line in answer.err.splitlines())
        told = told or (answer.out != "" and answer.argv[0] in SAID_ON_OUTPUT)
        if answer.code in (1, 3, 4, 5) and not told:
            self.append(f"no error {text}")

    def here(self, hitch: Hitch, state: str, *words: str) -> None:
        try:
            self.judge(state, hitch.here(*words, check=False))
        except Exception as error:
            self.append(f"{type(error).__name__}: {error}, in state {state}: hitch {words}")

    def check(self, home: Path) -> None:
        assert not self, f"{len(self)} mistakes:\n" + "\n".join(self[:20])
        assert not (home / "bugs.log").exists(), (home / "bugs.log").read_text()


@contextmanager
def judged(ground: Ground) -> Iterator[Wrong]:
    wrong = Wrong()
    yield wrong
    wrong.check(ground.home)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_command_on_a_session_that_does_not_run(ground: Ground, states: States) -> None:
    with judged(ground) as wrong:
        for number, (path, command) in enumerate(OF_SESSIONS):
            for state, session in states.copies(number, 1 if LONG else 4).items():
                for _ in range(2):
                    wrong.here(ground.hitch, state, *plain(path, command, session))
            if path != ("rm",):
                wrong.here(ground.hitch, "many", "rm", "-f", *os.listdir(ground.home / "sessions"))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("state", LIVING)
def test_every_command_on_a_session_that_runs(ground: Ground, states: States, state: str) -> None:
    some = OF_SESSIONS if LONG else OF_SESSIONS[LIVING.index(state) :: len(LIVING)]
    with judged(ground) as wrong:
        for path, command in some:
            session = states.live(state)
            for _ in range(2):
                wrong.here(ground.hitch, state, *plain(path, command, session.id))
            ground.hitch.here("rm", "-f", session.id, check=False)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_option_with_right_wrong_and_odd_values(ground: Ground, states: States) -> None:
    """Each on one state in turn, and every tenth of them; all of them on each in the long run."""
    turn = 0
    with judged(ground) as wrong:
        for number, (path, command) in enumerate(COMMANDS):
            known = states.copies(number)
            every = list(variations(path, command, "ID"))
            for words in every if LONG else every[number % 10 :: 10]:
                for state in ENDED if LONG else (ENDED[turn % len(ENDED)],):
                    session = known[state]
                    if not (ground.home / "sessions" / session).exists():
                        session = known[state] = states.copy(state, 1000 + turn)
                    wrong.here(ground.hitch, state, *(session if word == "ID" else word for word in words))
                turn += 1


@pytest.mark.parametrize("words", ELSEWHERE, ids=lambda words: " ".join(words)[:40].encode("unicode_escape").decode())
def test_commands_that_start_others(ground: Ground, words: tuple[str, ...]) -> None:
    with judged(ground) as wrong:
        wrong.judge("none", ground.hitch(*words, check=False, env={"HITCHPOST_DEBUG": ""}, cwd=ground.place))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_commands_at_a_time_on_the_same_session(ground: Ground, states: States) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    pairs = [(one, other) for one in DEEDS for other in DEEDS]
    with judged(ground) as wrong, ThreadPoolExecutor(2) as two:
        for one, other in pairs if LONG else chance.sample(pairs, 3):
            session = states.live(chance.choice(LIVING[:1] + LIVING[2:])).id

            def run(deed: str, session: str = session) -> Answer:
                more = ("hello",) if deed == "send" else ("--yes",) if deed == "cancel" else ()
                return ground.hitch(*deed.split(), session, *more, check=False, env={"HITCHPOST_DEBUG": ""})

            for answer in two.map(run, (one, other)):
                wrong.judge(f"of {one} beside {other} (seed {seed})", answer)
            ground.hitch.here("rm", "-f", session, check=False)
