"""Claude Code: hooks through ``--settings``, which adds to the person's own and changes none of their files."""

from __future__ import annotations

from hitchpost import lightjson
from hitchpost.agents.prepare import Injected, hook_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HOOK_S, ANSWER_S = 5, 86_400
HOOKS = {
    "SessionStart": HOOK_S,
    "UserPromptSubmit": HOOK_S,
    "PermissionRequest": ANSWER_S,
    "Stop": HOOK_S,
    "StopFailure": HOOK_S,
}
"""The events that are told, and how long each may take. A permission waits for a person."""


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    hooks = {
        event: [{"hooks": [{"type": "command", "command": hook_command(run_folder, event, wait_s), "timeout": wait_s}]}]
        for event, wait_s in HOOKS.items()
    }
    return Injected(argv=("--settings", lightjson.dumps({"hooks": hooks})))
