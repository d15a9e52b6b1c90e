"""GitHub Copilot CLI: hooks through a plugin folder of this run."""

from __future__ import annotations

import os

from hitchpost import lightjson
from hitchpost.agents.prepare import Injected, hook_command
from hitchpost.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "copilot"
HOOK_S = 5
HOOKS = ("sessionStart", "userPromptSubmitted", "agentStop", "errorOccurred")


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    folder = os.path.join(run_folder, FOLDER)
    os.makedirs(folder, 0o700, exist_ok=True)
    hooks = {
        event: [{"type": "command", "bash": hook_command(run_folder, event, HOOK_S), "timeoutSec": HOOK_S}]
        for event in HOOKS
    }
    plugin = {"name": "hitchpost", "version": "1.0.0", "hooks": "hooks.json"}
    for name, table in (("plugin.json", plugin), ("hooks.json", {"version": 1, "hooks": hooks})):
        files.replace_file(os.path.join(folder, name), lightjson.dumps(table).encode(), durable=False)
    return Injected(argv=("--plugin-dir", folder))
