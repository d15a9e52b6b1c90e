"""Process 1 of a pod: it starts the server and, if that ends, another; reaps everything; and hands SIGTERM on.

The server is a process of its own, so that nothing that goes wrong with it ends the agent. This one does so little, and
imports so little, that nothing can go wrong. Where it is not process 1, it takes in orphans all the same.
"""

from __future__ import annotations

import os
import sys
from _signal import (
    SIG_BLOCK,
    SIG_IGN,
    SIGCHLD,
    SIGINT,
    SIGKILL,
    SIGPIPE,
    SIGTERM,
    pthread_sigmask,
    signal,
    sigtimedwait,
)
from _socket import AF_INET, AF_INET6, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from hitchpost.pod.own_log import note
from hitchpost.runtimes.kept import keeper_process
from hitchpost.store.home import home_path, session_folder
from hitchpost.system import process

LISTENED = (SIGCHLD, SIGINT, SIGTERM)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
MOST_WAITING = 64
LOOK_S = 0.05
"""While a run is being ended: a keeper that is just being started has no name yet."""


class First:
    def __init__(self, words: list[str]) -> None:
        """Session, host, port and the folder of the identity."""
        self.words = words
        self.listening = _listen(words[1], int(words[2]))
        self.server = 0
        self.asked: set[int] = set()
        self.leaving = False
        self._pause_s = FIRST_PAUSE_S

    def run(self) -> int:
        process.become_subreaper()
        pthread_sigmask(SIG_BLOCK, LISTENED)
        self.server = self._start_server()
        while not self._is_done():
            wait_s = LOOK_S if self.leaving else self._pause_s if not self.server else 3600.0
            told = sigtimedwait(LISTENED, wait_s)
            if told is not None and told.si_signo in (SIGTERM, SIGINT):
                self._leave()
            self._reap()
            if self.leaving:
                self._ask_keepers()
            elif not self.server and told is None:
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
                self.server = self._start_server()
        self._end_the_rest()
        return 0

    def _is_done(self) -> bool:
        return self.leaving and not self.server and not self._keepers()

    def _start_server(self) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            process.die_with_parent(SIGKILL)
            process.forget_signals()
            signal(SIGPIPE, SIG_IGN)
            from hitchpost.pod.server import main

            code = main(self.words[0], self.listening.detach(), self.words[3])
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def _leave(self) -> None:
        """The keeper ends the run, with its grace, as at a shutdown. The server stays until hubs know all of it."""
        if not self.leaving:
            self.leaving = True
            note("asked to end: the run is ended first")
            if self.server:
                process.send(self.server, SIGTERM)

    def _keepers(self) -> list[int]:
        folder = os.path.join(session_folder(home_path(), self.words[0]), "runs")
        try:
            runs = [os.path.join(folder, name) for name in os.listdir(folder)]
        except FileNotFoundError:
            return []
        return [pid for pid in map(keeper_process, runs) if pid is not None and process.has_live_thread(pid)]

    def _ask_keepers(self) -> None:
        for pid in self._keepers():
            if pid not in self.asked and process.send(pid, SIGTERM):
                self.asked.add(pid)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.server:
                self.server = 0
                if not self.leaving:
                    note(f"the server has ended with wait status {status}, and is started again; the run goes on")

    def _end_the_rest(self) -> None:
        """What a run has left behind ends with its pod."""
        while left := process.below(os.getpid()):
            for pid in left:
                process.send(pid, SIGKILL)
            sigtimedwait(LISTENED, LOOK_S)
            self._reap()


def _listen(host: str, port: int) -> socket:
    """Here, so that it outlives the server: who comes while another one is started waits."""
    listening = socket(AF_INET6 if ":" in host else AF_INET, SOCK_STREAM)
    listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    listening.bind((host, port))
    listening.listen(MOST_WAITING)
    listening.setblocking(False)
    return listening


def main() -> None:
    os._exit(First(sys.argv[1:5]).run())
