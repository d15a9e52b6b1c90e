"""A watcher that does what a test wants: ``python fake_watcher.py HOW RUN_FOLDER KEEPER_PID``. Standard library only.

``end``: leaves at once. ``away``: never connects. ``late``: connects when there is a file ``come`` in the run's folder.
``mute``: hears, and answers nothing but pings. ``say``: sends the text that it is asked to send, as a request of its
own, and then answers. ``nonsense``: sends what is no frame. What it hears is in the file ``heard``.
"""

import json
import os
import socket
import sys
import time

how, folder = sys.argv[1:3]
os.chdir(folder)
log = open("heard", "a", buffering=1)  # noqa: SIM115
print(json.dumps({"event": "begun", "pid": os.getpid()}), file=log)
if how == "end":
    sys.exit(1)
while how == "away" or (how == "late" and not os.path.exists("come")):
    time.sleep(0.01)
keeper = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
keeper.connect("ctl.sock")


def send(kind: bytes, message: object) -> None:
    body = json.dumps(message).encode()
    keeper.sendall(len(body).to_bytes(4, "big") + kind + body)


send(b"H", {"v": 1, "role": "watcher"})
if how == "nonsense":
    keeper.sendall(b"\xff" * 64)
inbox = b""
while data := keeper.recv(1 << 16):
    inbox += data
    while len(inbox) >= 5 and len(inbox) >= 5 + (size := int.from_bytes(inbox[:4], "big")):
        kind, body, inbox = inbox[4:5], inbox[5 : 5 + size], inbox[5 + size :]
        if kind != b"E":
            continue
        event = json.loads(body)
        short = {name: item[:80] if isinstance(item, str) else item for name, item in event.items()}
        print(json.dumps({**short, "size": len(body)}), file=log)
        if event["event"] == "ping":
            send(b"Q", {"id": 0, "op": "pong"})
        if event["event"] == "asked" and how in ("say", "late"):
            if event.get("text", "").startswith("{"):
                send(b"Q", json.loads(event["text"]))
            answer = {"ok": True, "offset": 0, "echo": event.get("text"), "output": (event.get("payload") or "")[:80]}
            send(b"Q", {"id": 0, "op": "answered", "asked": event["number"], "answer": answer})
