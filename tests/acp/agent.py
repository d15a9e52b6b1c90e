"""An agent that speaks ACP on its pipes, for tests of our client and of the page: ``python agent.py FOLDER [images]``.

The first word of a prompt says what to do: ``ask`` for a permission, ``fail``, ``limit`` for a usage limit with the end
behind it, ``tool``, ``remember``, ``look`` at the images, ``hold`` until somebody writes to FOLDER.gate, ``wait`` for
an interruption, ``pay AMOUNT [CURRENCY]`` to tell what all of it has cost; else it answers in markdown. What it
remembers is in FOLDER, by conversation.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

ANSWER = """# Well

A **bold** word, `code` and a list:

- one
- two

```py
print(1)
```
<img src=x onerror=alert(1)>"""
OPTIONS = [
    {"optionId": "a", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "r", "name": "Reject", "kind": "reject_once"},
]
REMEMBERED, IMAGES = Path(sys.argv[1]), "images" in sys.argv
numbers = iter(range(1000, 2000))


def write(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    found: dict[str, Any] = json.loads(line)
    return found


def update(session: str, word: str, **more: Any) -> None:
    write(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": word, **more}})


def say(session: str, text: str) -> None:
    for part in text.splitlines(keepends=True):
        update(session, "agent_message_chunk", content={"type": "text", "text": part})


def deal_with(session: str, blocks: list[dict[str, Any]], number: int) -> None:
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    memory = REMEMBERED / session
    before = memory.read_text() if memory.exists() else ""
    memory.write_text(before + text + "\n")
    if text.startswith("fail"):
        write(id=number, error={"code": -32603, "message": "Internal error", "data": {"details": "out of order"}})
        return
    if text.startswith("limit "):
        details = f"usage limit reached, try again {text.removeprefix('limit ')}"
        write(id=number, error={"code": -32603, "message": "Internal error", "data": {"details": details}})
        return
    reason = "end_turn"
    if text.startswith("ask"):
        asked = next(numbers)
        tool = {"toolCallId": "t1", "title": "bash", "rawInput": {"command": "touch asked"}}
        params = {"sessionId": session, "toolCall": tool, "options": OPTIONS}
        write(id=asked, method="session/request_permission", params=params)
        while (answer := read()).get("id") != asked:
            pass
        say(session, json.dumps(answer["result"]["outcome"]))
    elif text.startswith("wait"):
        say(session, "I am waiting")
        while read().get("method") != "session/cancel":
            pass
        reason = "cancelled"
    elif text.startswith("tool"):
        diff = {"type": "diff", "path": "a.py", "oldText": "1", "newText": "2"}
        shown = {"type": "content", "content": {"type": "text", "text": "three tests pass"}}
        update(session, "tool_call", toolCallId="t2", title="make test", kind="execute", status="in_progress")
        update(session, "plan", entries=[{"content": "Run the tests", "status": "completed", "priority": "high"}])
        update(session, "tool_call_update", toolCallId="t2", status="completed", content=[diff, shown])
        say(session, "all done")
    elif text.startswith("hold"):
        say(session, "I hold")
        with open(f"{REMEMBERED}.gate") as gate:
            gate.read()
    elif text.startswith("look"):
        for block in blocks[1:]:
            data = b64decode(block["data"], validate=True)
            say(session, f"{block['type']} {block['mimeType']} {sha256(data).hexdigest()[:8]}\n")
    elif text.startswith("pay "):
        amount, *currency = text.split()[1:]
        cost = {"amount": json.loads(amount), "currency": currency[0] if currency else "USD"}
        update(session, "usage_update", used=10, size=100, cost=cost)
        update(session, "usage_update", used=10, size=100)
        say(session, "paid")
    elif text.startswith("remember"):
        say(session, before.replace("\n", " "))
    else:
        say(session, ANSWER)
    write(id=number, result={"stopReason": reason, "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}})


def main() -> None:
    while True:
        message = read()
        method, number, params = message.get("method"), message.get("id"), message.get("params", {})
        if method == "initialize":
            can = {"loadSession": False, "sessionCapabilities": {"resume": {}}, "promptCapabilities": {"image": IMAGES}}
            write(id=number, result={"protocolVersion": 1, "agentCapabilities": can})
        elif method == "session/new":
            write(id=number, result={"sessionId": f"talk-{len(list(REMEMBERED.iterdir()))}"})
        elif method == "session/resume" and not (REMEMBERED / params["sessionId"]).exists():
            write(id=number, error={"code": -32602, "message": "no such conversation"})
        elif method == "session/resume":
            write(id=number, result={})
        elif method == "session/prompt":
            deal_with(params["sessionId"], params["prompt"], int(number or 0))


main()
