"""Which adapter watches which agent: one module each, named in the agent's file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitchpost.watcher.adapter import Adapter
    from hitchpost.watcher.watching import Watching

ADAPTERS = {
    "rules": "hitchpost.watcher.adapter:Adapter",
    "lines": "hitchpost.watcher.lines:Lines",
    "acp": "hitchpost.watcher.acp:Acp",
    "aider": "hitchpost.watcher.aider:Aider",
    "copilot": "hitchpost.watcher.copilot:Copilot",
    "claude": "hitchpost.watcher.claude:Claude",
    "codex": "hitchpost.watcher.codex:Codex",
    "gemini": "hitchpost.watcher.gemini:Gemini",
    "goose": "hitchpost.watcher.goose:Goose",
    "opencode": "hitchpost.watcher.opencode:Opencode",
    "qwen": "hitchpost.watcher.qwen:Qwen",
}


def open_adapter(watching: Watching) -> Adapter:
    module, _, name = ADAPTERS[watching.agent.adapter].partition(":")
    adapter: Adapter = getattr(import_module(module), name)(watching)
    return adapter
