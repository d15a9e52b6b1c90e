"""Started instead of Codex as ``python -I -S …/codex_launch.py RUN_FOLDER codex WORD…``: starts its app-server and it.

The app-server has the conversation; the screen is one client of it, and the watcher is another. This process ends when
the screen ends, in the same way: with its code, or by its signal. The server never outlives it. When the server does
not come, Codex runs alone, as it does without us. Standard library only, and nothing of ours.
"""

import os
import resource
import signal
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM, socket

SOCKET = "codex.sock"
START_S = 15.0
LOOK_EVERY_S = 0.02
END_S = 0.5
"""How long each request to end may take before the next, firmer one."""
ALONE = "--no-daemon"
"""Codex refuses it together with ``--remote``."""
SETTINGS = {
    "-c": "",
    "--config": "",
    "--enable": "",
    "--disable": "",
    "-m": "model",
    "--model": "model",
    "-a": "approval_policy",
    "--ask-for-approval": "approval_policy",
    "-s": "sandbox_mode",
    "--sandbox": "sandbox_mode",
}
"""Options with a value that the server must know too, and the setting that each of them is."""
BYPASS = "--dangerously-bypass-approvals-and-sandbox"
BYPASSED = ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"')
PERMISSIONS = ("approval_policy", "sandbox_mode")
"""Codex refuses these for a conversation that goes on in a server. The server has them."""
SHOWN_ONLY = ("-i", "--image", "--no-alt-screen", "--last", "--all", ALONE)
"""What concerns only the screen. Any other option, and any other command, makes Codex run alone."""
CONTINUED = ("resume", "fork")
# fmt: off
COMMANDS = (
    "a", "agents", "app-server", "apply", "archive", "cloud", "completion", "debug", "delete", "doctor", "e", "exec",
    "exec-server", "features", "help", "login", "logout", "mcp", "mcp-server", "migrate-rollouts", "plugin", "queue",
    "remote-control", "review", "sandbox", "unarchive", "update",
)
# fmt: on
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
AWAITED = {*FORWARDED, signal.SIGCHLD}
PR_SET_PDEATHSIG = 1


def main(run_folder: str, argv: list[str]) -> None:
    from ctypes import CDLL

    prctl = CDLL(None).prctl
    parts = sorted_out(argv[1:])
    if parts is None:
        os.execvp(argv[0], argv)
    for_server, for_screen = parts
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    path = os.path.join(run_folder, SOCKET)
    server = spawn([argv[0], *for_server, "app-server", "--listen", f"unix://{path}"], prctl, apart=True)
    try:
        wanted = comes(server, run_folder)
        if wanted > 0:
            end(server)
            end_like(wanted)
        words = [argv[0], "--remote", f"unix://{path}", *for_screen] if wanted == 0 else argv
        status = follow(spawn(words, prctl, apart=False))
    finally:
        end(server)
    if os.WIFSIGNALED(status):
        end_like(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def sorted_out(words: list[str]) -> tuple[list[str], list[str]] | None:
    """What the server and what the screen are told; None when Codex must run alone."""
    goes_on = any(word in CONTINUED for word in words)
    server: list[str] = []
    screen: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, _, value = word.partition("=")
        if word == "--":
            screen += [word, *rest]
            break
        if word == BYPASS:
            server += BYPASSED
            screen += [] if goes_on else [word]
        elif option in SETTINGS:
            value = value if "=" in word else (rest.pop(0) if rest else "")
            setting = SETTINGS[option] or (value.partition("=")[0] if option in ("-c", "--config") else "")
            server += [option, value] if not SETTINGS[option] else ["-c", f'{setting}="{value}"']
            screen += [] if goes_on and setting in PERMISSIONS else [option, value]
        elif word in COMMANDS or (word.startswith("-") and word not in SHOWN_ONLY):
            return None
        elif word != ALONE:
            screen.append(word)
    return server, screen


def spawn(argv: list[str], prctl: object, *, apart: bool) -> int:
    """A child that ends with this process. ``apart``: it has nothing to do with the terminal."""
    me = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # type: ignore[operator]
        if os.getppid() != me:
            os._exit(127)
        if apart:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def comes(server: int, run_folder: str) -> int:
    """Wait for the server. 0 when it is there, -1 when it does not come, or the signal that asks us to end."""
    deadline = time.monotonic() + START_S
    folder = os.open(run_folder, os.O_RDONLY | os.O_DIRECTORY)  # the path of a socket has 107 bytes at most
    while time.monotonic() < deadline:
        told = signal.sigtimedwait(AWAITED, LOOK_EVERY_S)
        if told is not None and told.si_signo != signal.SIGCHLD:
            return int(told.si_signo)
        if is_gone(server):
            return -1
        client = socket(AF_UNIX, SOCK_STREAM)
        try:
            client.connect(f"/proc/self/fd/{folder}/{SOCKET}")
            return 0
        except OSError:
            continue
        finally:
            client.close()
    return -1


def is_gone(pid: int) -> bool:
    """Whether a child has ended. It is not reaped: its number stays its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def follow(agent: int) -> int:
    """Until the agent ends. Signals that were meant for it reach it."""
    while not is_gone(agent):
        told = signal.sigwait(AWAITED)
        if told != signal.SIGCHLD and not is_gone(agent):
            os.kill(agent, told)
    return os.waitpid(agent, 0)[1]


def end(server: int) -> None:
    """A server that is asked once ends after its turn; asked again, at once. It may be a script that starts another."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + END_S
        if not is_gone(server):
            try:
                os.killpg(server, number)
            except ProcessLookupError:
                os.kill(server, number)  # it has only just been started
        while not is_gone(server) and (left_s := deadline - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, min(left_s, END_S))
    os.waitpid(server, 0)


def end_like(number: int) -> None:
    """End this process by a signal, as the agent did."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.kill(os.getpid(), number)
    os._exit(128 + number)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
