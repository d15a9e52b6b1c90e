"""The pod's server: hubs link to it with TLS, get the session's files and output, and speak to its keeper."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import threading

from hitchpost import lightjson, wire
from hitchpost.errors import FAILURES
from hitchpost.fleet import frames, shipped
from hitchpost.fleet.pipe import Pipe
from hitchpost.fleet.tls import Identity, NotTrusted, why_not_a_hub
from hitchpost.pod.channels import KeeperClient
from hitchpost.pod.folder import Folder
from hitchpost.pod.hub import HubLink
from hitchpost.pod.own_log import note
from hitchpost.runtimes import keepers
from hitchpost.runtimes.kept import is_kept, keeper_process
from hitchpost.store import files
from hitchpost.store.home import open_home, run_folder, session_folder
from hitchpost.terminal import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

MOST_HUBS = 32
MOST_STRANGERS = 64
"""Connections that have not shown yet who they are. The oldest goes when more come: a hub says at once who it is, and
who keeps the door busy does not."""
LEAVE_S = 3.0
"""So long a server that leaves waits for hubs to take the rest."""
READY_S = 30.0
"""So long a keeper's process waits for the first order."""
AGAIN_S = 0.05
LATE_S = 0.05
"""The time of output is written a moment after the output."""
UNTOLD_LOOK_S = 1.0
"""So often is looked where the kernel does not tell of changes."""


class Server:
    def __init__(self, home: str, session: str, identity: Identity) -> None:
        self.home, self.session, self.identity = home, session, identity
        self.folder = Folder(session_folder(home, session))
        self.hubs: set[HubLink] = set()
        self.ends: dict[int, int] = {}
        self.kept = 0
        """The run that a keeper has; 0: none."""
        self.leaving = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._strangers: dict[Pipe, None] = {}
        self._keeper: KeeperClient | None = None
        self._keeper_fd = -1
        self._late: asyncio.TimerHandle | None = None
        self._starting = asyncio.Lock()
        self._all_ended = asyncio.Event()
        self._has_begun = threading.Event()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            note(f"background work failed: {error!r}")

    # hubs ---------------------------------------------------------------------------------------------------------

    async def serve(self, listening: socket.socket) -> None:
        """Until the pod is asked to end."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGIO, self.look)
        loop.add_signal_handler(signal.SIGTERM, self._leave)
        await self._find_run()
        name = f"{listening.getsockname()[0]}:{listening.getsockname()[1]}"
        await asyncio.to_thread(_write_address, self.home, listening.getsockname()[1])
        note(f"serves hubs of session {self.session} at {name}")
        accepting = self.start(self._accept(listening))
        if not self.kept:
            self.start(asyncio.to_thread(self._get_ready))
        await self._all_ended.wait()
        self._has_begun.set()
        accepting.cancel()
        listening.close()
        await self._say_farewell()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                peer, address = await loop.sock_accept(listening)
            except OSError as error:
                # of one who came and is gone, of a network that is away, or of too many open files: it passes
                if error.errno != errno.ECONNABORTED:
                    note(f"nobody can come now: {error}")
                await asyncio.sleep(AGAIN_S)
                continue
            self.start(self._meet(peer, str(address[0])))

    async def _meet(self, peer: socket.socket, address: str) -> None:
        """Find out who it is. Only a hub of this installation gets any further."""
        link: HubLink | None = None
        try:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pipe = Pipe(self.identity.context(), None, beat_s=frames.POD_BEAT_S, cut_s=frames.POD_CUT_S)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: pipe, peer)
            self._make_room_for(pipe)
            try:
                await pipe.ready()
            finally:
                self._strangers.pop(pipe, None)
            if why := why_not_a_hub(pipe.tls):
                pipe.send(frames.json_frame(frames.REFUSED, {"why": why}))
                pipe.close()
                raise NotTrusted(why)
            if len(self.hubs) >= MOST_HUBS:
                pipe.close()
                raise NotTrusted(f"{MOST_HUBS} hubs are linked already")
            link = HubLink(self, pipe, address)
        except NotTrusted as error:
            note(f"refused {address}: {error}")
        except OSError:
            peer.close()  # somebody who has only looked whether the port is open
        if link is not None:
            self.hubs.add(link)
            try:
                await link.serve()
            finally:
                self.hubs.discard(link)

    def _make_room_for(self, pipe: Pipe) -> None:
        if len(self._strangers) >= MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[pipe] = None

    # what changes -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Find what has changed in the session's folder, and let every hub have it."""
        changed = self.folder.look()
        if changed:
            for hub in self.hubs:
                hub.shipment.changed(changed)

    async def _look_now_and_then(self) -> None:
        while self.kept:
            await asyncio.sleep(UNTOLD_LOOK_S)
            if not self.folder.is_told:
                self.look()

    def _on_keeper_frame(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.POKE:
            self._reach(int.from_bytes(payload[:8], "big"))
        elif kind == wire.WELCOME:
            self._reach(int(frames.object_of(payload)["end"]))
        elif kind == wire.EVENT:
            end = frames.is_exit(wire.frame(kind, payload))
            if end is not None:
                self._reach(end)
            self.look()

    def _reach(self, end: int) -> None:
        self.ends[self.kept] = max(end, self.ends.get(self.kept, 0))
        for hub in self.hubs:
            hub.shipment.wake()
        if self._keeper is not None:
            self._keeper.write(wire.follow(self.ends[self.kept]))
        if self._late is None:
            self._late = asyncio.get_running_loop().call_later(LATE_S, self._look_at_times)

    def _look_at_times(self) -> None:
        self._late = None
        for hub in self.hubs:
            hub.shipment.changed([(self.folder.run, shipped.TIMES)])

    # runs ---------------------------------------------------------------------------------------------------------

    async def _find_run(self) -> None:
        """A server that was started again finds the run as it is; a pod that was started again, what is left of it."""
        runs = await asyncio.to_thread(self.folder.runs)
        self.folder.run = runs[-1] if runs else 0
        for run in runs:
            self.ends[run] = await asyncio.to_thread(self._end_of, run)
        if self.folder.run and await asyncio.to_thread(is_kept, self._run_folder(self.folder.run)) is not False:
            self.keep(self.folder.run)
        elif self.folder.run:
            await self._settle()
        self.folder.watch()
        self.folder.look()

    def _get_ready(self) -> None:
        """Somebody waits for the first order to be carried out: until it comes, what that takes is loaded."""
        with keepers.Ahead(self._run_folder(self.folder.run + 1)):
            import hitchpost.pod.requests
            import hitchpost.pod.runs  # noqa: F401

            self._has_begun.wait(READY_S)

    def _run_folder(self, run: int) -> str:
        return run_folder(self.folder.path, run)

    def _end_of(self, run: int) -> int:
        where = self.folder.output(run)
        return max(output.bounds(where)[1], output.told_end(where))

    async def begin(self, order: dict[str, Any]) -> dict[str, object]:
        """Begin a run. The answer goes out after the files that tell of it."""
        from hitchpost.pod.requests import refused
        from hitchpost.pod.runs import begin

        async with self._starting:
            if self.leaving:
                return {"ok": False, "error": "the pod is being ended", "kept": False}
            try:
                answer = await asyncio.to_thread(begin, self.home, self.session, order)
            except FAILURES as error:
                return {**refused(error), "kept": False}
            finally:
                self._has_begun.set()
            run = int(order["run"])
            if run > self.folder.run:
                self.folder.run = run
                self.folder.watch()
                self.ends.setdefault(run, 0)
                for hub in self.hubs:
                    hub.shipment.begun(run)
            if answer.get("ok") is True and self.kept != run:
                self.keep(run)
            self.look()
            if not self.kept:
                self._say_over()
            return answer

    def keep(self, run: int) -> None:
        """A keeper has the run: follow it, and hear of its end from the kernel."""
        self.kept = run
        for hub in self.hubs:
            hub.shipment.say(frames.frame(frames.KEPT, frames.number(run)))
        self.start(self._follow(run))
        self.start(self._look_now_and_then())

    async def _follow(self, run: int) -> None:
        folder = self._run_folder(run)
        gone = asyncio.Event()
        loop = asyncio.get_running_loop()
        while (pid := await asyncio.to_thread(keeper_process, folder)) is None:
            if await asyncio.to_thread(is_kept, folder) is False:
                break  # it has ended already
            await asyncio.sleep(AGAIN_S)
        fd = _pidfd(pid)
        try:
            if fd >= 0:
                loop.add_reader(fd, gone.set)
                while not gone.is_set() and self.kept == run:
                    await self._listen_to(folder, gone)
        finally:
            if fd >= 0:
                loop.remove_reader(fd)
                os.close(fd)
        await self._ended(run)

    async def _listen_to(self, folder: str, gone: asyncio.Event) -> None:
        """Until the keeper is gone, or has hung up."""
        lost = asyncio.Event()
        said = lightjson.dumps({"v": wire.VERSION, "role": "control"}).encode()
        client = self._keeper = KeeperClient(folder, said, self._on_keeper_frame, lost.set)
        await client.connect()
        waits = [asyncio.ensure_future(event.wait()) for event in (lost, gone)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not gone.is_set():
                await asyncio.sleep(AGAIN_S)
        finally:
            self._keeper = None
            client.close()
            for wait in waits:
                wait.cancel()

    async def _ended(self, run: int) -> None:
        """The keeper is gone. What it left unsaid is written down, and hubs hear that there is no more."""
        await self._settle()
        self.ends[run] = max(self.ends.get(run, 0), await asyncio.to_thread(self._end_of, run))
        self.kept = 0
        self.look()
        self._say_over()
        if self.leaving:
            self._all_ended.set()

    async def _settle(self) -> None:
        from hitchpost.pod.runs import settle

        await asyncio.to_thread(settle, self.home, self.session)

    def _say_over(self) -> None:
        for hub in self.hubs:
            hub.say_over(self.folder.run)

    # the end ------------------------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """Process 1 asks the keeper to end the run; this one tells the hubs how it ended."""
        self.leaving = True
        if not self.kept and not self._starting.locked():
            self._all_ended.set()
        elif not self.kept:
            self.start(self._leave_after_start())

    async def _leave_after_start(self) -> None:
        async with self._starting:
            if not self.kept:
                self._all_ended.set()

    async def _say_farewell(self) -> None:
        for hub in self.hubs:
            hub.shipment.pace(is_slow=False)
        waits = [asyncio.ensure_future(hub.shipment.idle()) for hub in self.hubs]
        if waits:
            await asyncio.wait(waits, timeout=LEAVE_S)
        for hub in list(self.hubs):
            hub.pipe.close()
        self.folder.close()


def _write_address(home: str, port: int) -> None:
    """For whoever has let the system choose the port."""
    value: dict[str, object] = {"schema": files.SCHEMA, "pid": os.getpid(), "port": port}
    files.write_object(os.path.join(home, "address.json"), value, durable=False)


def _pidfd(pid: int | None) -> int:
    """-1 when it is gone."""
    try:
        return -1 if pid is None else os.pidfd_open(pid)
    except OSError:
        return -1


def main(session: str, listening: int, identity: str) -> int:
    server = Server(open_home(), session, Identity(identity, is_pod=True))
    asyncio.run(server.serve(socket.socket(fileno=listening)))
    return 0
