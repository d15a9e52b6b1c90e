"""Started by an agent as ``python -I -S …/hook.py RUN_FOLDER SECONDS EVENT``, with the event's JSON on standard input.

Hands the event to the keeper of the run, waits for the answer as long as it may, and prints it. Whatever goes wrong, it
prints nothing and ends with 0: an agent never fails because of us. Standard library only, and nothing of ours.
"""

import os
import sys
from _signal import ITIMER_REAL, SIGALRM, setitimer, signal
from _socket import AF_UNIX, SOCK_STREAM, socket

MOST_BYTES = 1 << 20
HAND_OVER_S = 5.0


def main() -> None:
    folder, wait_s, event = sys.argv[1:4]
    signal(SIGALRM, lambda *_: os._exit(0))  # time is up, whatever it waits for
    setitimer(ITIMER_REAL, min(float(wait_s), HAND_OVER_S))
    payload = sys.stdin.buffer.read(MOST_BYTES)
    os.chdir(folder)  # the path of a socket has 107 bytes at most
    keeper = socket(AF_UNIX, SOCK_STREAM)
    keeper.connect("ctl.sock")
    send(keeper, b"H", {"v": 1, "role": "control"})
    send(keeper, b"Q", {"id": 1, "op": "hook", "name": event, "payload": payload.decode("utf-8", "replace")})
    setitimer(ITIMER_REAL, float(wait_s))
    inbox = b""
    while True:
        while len(inbox) >= 5 and len(inbox) >= 5 + (size := int.from_bytes(inbox[:4], "big")):
            kind, body, inbox = inbox[4:5], inbox[5 : 5 + size], inbox[5 + size :]
            if kind == b"R":
                from json import loads

                sys.stdout.write(loads(body).get("output") or "")
                return
        data = keeper.recv(65536)
        if not data:
            return
        inbox += data


def send(keeper: socket, kind: bytes, message: dict[str, object]) -> None:
    from json import dumps

    body = dumps(message).encode()
    keeper.sendall(len(body).to_bytes(4, "big") + kind + body)


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    finally:
        os._exit(0)
