"""Gemini CLI: it stays the process that we start."""

from __future__ import annotations

from hitchpost.agents.prepare import Injected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    return Injected(env={"GEMINI_CLI_NO_RELAUNCH": "true"})
