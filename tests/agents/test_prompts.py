"""Prompts reach each real agent's model as they are, or are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.agents.driving import LONG_S
from tests.agents.everywhere import everywhere
from tests.agents.homes import AgentHome
from tests.agents.modelserver import ModelServer
from tests.agents.steps import screen_shown
from tests.agents.ways import WAYS, every
from tests.ground import Ground
from tests.support import eventually

pytestmark = pytest.mark.timeout(1800)
Homes = Callable[[str], AgentHome]
TEXTS = (
    "two\nlines\n\nand a gap",
    "\n".join(f"line {number} of a long prompt" for number in range(400)),
    "☃ naïve 漢字 👩‍💻 🇩🇪 👍🏽",
    "-h",
    "/nothing",
    "!touch shell",
    "# heading",
    "@nobody",
    "@here is a file",
    "{",
    "ends with \\",
)


@pytest.mark.parametrize("name", every("prompt byte-exact", "prompt byte-exact: /word", "prompt refused"))
def test_prompts_arrive_as_they_are(name: str, ground: Ground, agent_home: Homes, model: ModelServer) -> None:
    ways = WAYS[name]
    with everywhere(ground, agent_home(name)) as told, screen_shown(told.driven):
        (told.driven.home.place / "here").write_text("a secret\n")
        told.becomes("waiting")
        for text in TEXTS:
            if text in ways.refused:
                assert "as a command" in told.driven.refused(text)
                assert "as a command" in told.driven.refused(f" {text}")
                continue
            assert told.send(text)["proof"] in ways.proofs
            told.becomes("done")
            if text.startswith("@here"):  # most bring the file along, behind the text
                assert [prompt for prompt in model.history() if prompt.startswith(text)]
                continue
            arrived = model.history()[-1]
            assert (arrived if ways.exact else arrived.removeprefix(" ").rstrip()) == text
        assert not (told.driven.home.place / "shell").exists()
        if not ways.exact:  # what a person has left in the prompt would be sent with it
            told.driven.keys(b"left over")
            eventually(lambda: b"over" in told.driven.truth.output()[-4000:], LONG_S)
            assert "unsent text" in told.driven.refused("not this")
        told.driven.end()
