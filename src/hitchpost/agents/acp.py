"""An agent that speaks ACP on pipes: our client is started instead of it, starts it, and has the terminal."""

from __future__ import annotations

import sys

from hitchpost.agents.prepare import Injected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET = "acp.sock"
"""In the run's folder: where the client hears its watcher."""
MOST_LINE = 16 << 20
"""What they say to each other, in one line each."""
CONVERSATION = "--acp-conversation="
"""In the words of a run: the conversation to go on with. The client takes it out."""


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    return Injected(before=(sys.executable, "-I", "-m", "hitchpost.acp", run_folder))
