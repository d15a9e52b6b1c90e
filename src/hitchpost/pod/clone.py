"""Started as ``python -m hitchpost.pod.clone URL FOLDER SECRETS`` before a pod's session: clones the repository, once.

SECRETS is a folder that only this container sees: ``username`` and ``password``, or ``ssh-privatekey`` and perhaps
``known_hosts``, as in Kubernetes' own kinds of secrets. Nothing of them reaches the clone, arguments or messages. What
goes wrong is told where Kubernetes looks for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

TOLD = "/dev/termination-log"
MOST_TOLD = 2000
USERNAME, PASSWORD, SSH_KEY, KNOWN_HOSTS = "username", "password", "ssh-privatekey", "known_hosts"
CAREFUL = (
    *("-c", "protocol.ext.allow=never"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "http.lowSpeedLimit=100"),
    *("-c", "http.lowSpeedTime=60"),
    *("-c", "credential.helper="),
)
"""What git is told for the clone alone: it may be slow, but not silent."""
ASKPASS = """#!/bin/sh
case "$1" in
Username*) exec cat "$HITCHPOST_GIT_SECRETS/username" ;;
*) exec cat "$HITCHPOST_GIT_SECRETS/password" ;;
esac
"""


def clone(url: str, folder: str, secrets: str) -> str:
    """What went wrong; empty when the repository is there. One that is there already is left as it is."""
    if os.path.lexists(folder):
        return ""
    top = os.path.dirname(folder)
    for name in os.listdir(top):
        if name.startswith(".cloning-"):
            shutil.rmtree(os.path.join(top, name), ignore_errors=True)  # one that was interrupted
    unfinished = tempfile.mkdtemp(prefix=".cloning-", dir=top)
    with tempfile.TemporaryDirectory() as scratch:
        env = environment(secrets, scratch)
        words = ["git", *CAREFUL, "clone", "--quiet", "--", url, f"{unfinished}/clone"]
        done = subprocess.run(
            words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode == 0:
        os.rename(f"{unfinished}/clone", folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    return "" if done.returncode == 0 else hidden(last_words(done.stdout), secrets)


def environment(secrets: str, scratch: str) -> dict[str, str]:
    """For git, which asks no person. ``scratch`` is a folder for what has to be a file of its own."""
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "HITCHPOST_GIT_SECRETS": secrets}
    if os.path.exists(os.path.join(secrets, PASSWORD)):
        ask = os.path.join(scratch, "askpass")
        _write(ask, ASKPASS.encode(), 0o700)
        env["GIT_ASKPASS"] = ask
    known = os.path.join(secrets, KNOWN_HOSTS)
    hosts = f"-o UserKnownHostsFile={known}" if os.path.exists(known) else "-o StrictHostKeyChecking=accept-new"
    ssh = f"ssh -o BatchMode=yes -o ConnectTimeout=20 {hosts}"
    if (key := _read(os.path.join(secrets, SSH_KEY))) is not None:
        own = os.path.join(scratch, "key")
        _write(own, key, 0o600)  # ssh refuses one that others can read
        ssh += f" -o IdentitiesOnly=yes -i {own}"
    return {**env, "GIT_SSH_COMMAND": ssh}


def last_words(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return " · ".join(lines[-4:])[-MOST_TOLD:] or "git said nothing"


def hidden(text: str, secrets: str) -> str:
    """``text`` without what is secret, should git ever repeat it."""
    for name in (PASSWORD, SSH_KEY):
        secret = (_read(os.path.join(secrets, name)) or b"").decode("utf-8", "replace").strip()
        if secret:
            text = text.replace(secret, "***")
    return text


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(path: str, text: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(fd, "wb") as file:
        file.write(text)


def main(url: str, folder: str, secrets: str) -> int:
    try:
        wrong = clone(url, folder, secrets)
    except OSError as error:
        wrong = str(error)
    if not wrong:
        return 0
    print(wrong, file=sys.stderr)
    try:
        with open(TOLD, "w") as told:
            told.write(wrong)
    except OSError:
        return 1  # standard error has it
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
