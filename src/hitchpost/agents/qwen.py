"""Qwen Code: hooks through a file of system settings of this run, which adds to the person's own."""

from __future__ import annotations

from hitchpost import lightjson
from hitchpost.agents.prepare import Injected, hook_command
from hitchpost.errors import NOT_READ
from hitchpost.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PATH, USUAL = "QWEN_CODE_SYSTEM_SETTINGS_PATH", "/etc/qwen-code/settings.json"
HOOK_S = 5
HOOKS = ("SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure")
UI = {"hideWindowTitle": False, "showStatusInTitle": True, "enableFollowupSuggestions": False}
"""Its title says what it does. What it suggests stands in its prompt, and looks like a text that was not sent."""


def inject(run_folder: str, env: Mapping[str, str]) -> Injected:
    """The machine's own settings stay, with ours added. If they cannot be read, nothing is changed."""
    try:
        settings = _settings(env.get(PATH) or USUAL)
    except NOT_READ:
        return Injected()
    settings["ui"] = {**_table(settings, "ui"), **UI}
    hooks = settings["hooks"] = _table(settings, "hooks")
    for event in HOOKS:
        command = {"type": "command", "command": hook_command(run_folder, event, HOOK_S), "timeout": HOOK_S * 1000}
        theirs = hooks.get(event)
        hooks[event] = [*(theirs if isinstance(theirs, list) else ()), {"hooks": [command]}]
    path = f"{run_folder}/qwen.json"
    files.replace_file(path, lightjson.dumps(settings).encode(), durable=False)
    return Injected(env={PATH: path})


def _settings(path: str) -> dict[str, object]:
    """Raises ``OSError`` or ``ValueError``."""
    try:
        found = lightjson.loads(files.read_bytes(path, follow=True))
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"expected an object in {path}, but got {type(found).__name__}")
    return found


def _table(settings: dict[str, object], name: str) -> dict[str, object]:
    found = settings.get(name)
    return dict(found) if isinstance(found, dict) else {}
