"""In the container, where there is a Python: runs the agent and writes down exactly how it ended.

A shell knows of a death by signal only as 128 and more. Imports as little as it can.
"""

import os
import signal
import sys


def tell(folder: str, name: str, text: str) -> None:
    with open(f"{folder}/{name}", "w") as file:
        file.write(text + "\n")


def main(folder: str, argv: list[str]) -> int:
    report, result = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.environ["HITCHPOST_INSIDE"] = "agent"  # it, and whatever it starts, is found by this mark
            os.execvp(argv[0], argv)
        except BaseException as error:
            os.write(result, str(getattr(error, "errno", 0)).encode())
        finally:
            os._exit(127)
    os.close(result)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    if failure := os.read(report, 16):
        os.waitpid(pid, 0)
        why = os.strerror(int(failure)).lower()
        tell(folder, "failed", f"cannot execute {argv[0]} in the container: {why}")
        return 127
    tell(folder, "pid", str(pid))
    _, status = os.waitpid(pid, 0)
    if not os.isatty(0):
        tell(folder, "hung_up", "yes")  # its terminal has gone before it: many a program calls that a good end
    tell(folder, "exit_status", f"wait {status}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
