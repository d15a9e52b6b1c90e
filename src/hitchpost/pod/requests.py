"""What a hub asks of a pod, besides what it says to the keeper: looks at files and processes that only the pod has."""

from __future__ import annotations

import os
import time
from dataclasses import asdict

from hitchpost.errors import FAILURES, MALFORMED, UsageError
from hitchpost.ops.sessions.finish import finish_plan
from hitchpost.ops.views.diff import changed
from hitchpost.runtimes.local import Local
from hitchpost.store import images, records
from hitchpost.store.home import run_folder, session_folder
from hitchpost.store.runfiles import read_run
from hitchpost.system import process
from hitchpost.values import asdict as value_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Answer = dict[str, object]

BEGUN = time.monotonic()


def answer(home: str, session: str, request: dict[str, Any]) -> Answer:
    """Blocking. What went wrong is an answer, too."""
    ask = OPS.get(str(request.get("op")))
    if ask is None:
        return {"ok": False, "error": f"unknown request {request.get('op')!r}", "code": UsageError.code}
    try:
        return {"ok": True, **ask(home, session, request)}
    except FAILURES as error:
        return refused(error)
    except MALFORMED as error:
        return {"ok": False, "error": f"the request is not what was expected: {error!r}", "code": UsageError.code}


def refused(error: BaseException) -> Answer:
    """With what makes the same error of it again."""
    more = {name: getattr(error, name, "") for name in ("message", "hint", "code", "field")}
    numbers = {"http_status": getattr(error, "http_status", 500), "exit_code": getattr(error, "exit_code", 1)}
    return {"ok": False, "error": str(error), **more, **numbers}


def _diff(home: str, session: str, request: dict[str, Any]) -> Answer:
    """Bytes are told as text from which the same bytes can be made again."""
    record = records.read(session_folder(home, session))
    found = changed(home, record, stat=request.get("stat") is True)
    told = {"base": found.base, "head": found.head, "branch": found.branch, "cut": found.cut, "counts": found.counts}
    patch, stat = (text.decode("utf-8", "surrogateescape") for text in (found.patch, found.stat))
    return {**told, "files": [asdict(file) for file in found.files], "patch": patch, "stat": stat}


def _changes(home: str, session: str, request: dict[str, Any]) -> Answer:
    return {"counts": changed(home, records.read(session_folder(home, session)), stat=True).counts}


def _finish_plan(home: str, session: str, request: dict[str, Any]) -> Answer:
    into = request.get("into")
    return {"plan": finish_plan(home, session, str(into) if into else None)}


def _health(home: str, session: str, request: dict[str, Any]) -> Answer:
    health = Local().health(session_folder(home, session), int(request["run"]), session=session)
    return {**value_dict(health), "exit": None}


def _leftovers(home: str, session: str, request: dict[str, Any]) -> Answer:
    folder, run = session_folder(home, session), int(request["run"])
    runtime = Local()
    left = runtime.end_leftovers(folder, run, session=session) if request.get("end") else runtime.leftovers(folder, run)
    return {"count": left.count, "unknown": left.unknown}


def _put_image(home: str, session: str, request: dict[str, Any]) -> Answer:
    """A picture that goes with a prompt. Its name follows from what it holds."""
    from base64 import b64decode

    data = b64decode(request["data"], validate=True)
    images.check((data,))
    return {"name": images.keep(session_folder(home, session), (data,))[0]}


def _explain(home: str, session: str, request: dict[str, Any]) -> Answer:
    """Facts, values, and where each was seen, as runtimes give them."""
    folder = run_folder(session_folder(home, session), int(request["run"]))
    rows = [("pod's program", f"runs for {time.monotonic() - BEGUN:.0f} s", "pod")]
    room = os.statvfs(home)
    rows.append(("room on the volume", f"{room.f_bavail * room.f_frsize >> 20} MiB", home))
    for name, of in (("memory.current", "memory of the pod"), ("memory.events", "memory events")):
        if text := _group_file(name):
            rows.append((of, text, f"/sys/fs/cgroup/{name}"))
    run = read_run(folder)
    if run is not None:
        fields = process.stat(run.agent.pid)
        same = fields is not None and int(fields[19]) == run.agent.start
        state = fields[0].decode() if fields is not None and same else "gone"
        rows.append(("agent's process", f"{run.agent.pid}, {state}", f"/proc/{run.agent.pid}/stat"))
    return {"rows": [list(row) for row in rows]}


def _group_file(name: str) -> str:
    try:
        return " ".join(process.read(f"/sys/fs/cgroup/{name}").decode().split())
    except OSError:
        return ""


OPS: dict[str, Callable[[str, str, dict[str, Any]], Answer]] = {
    "changes": _changes,
    "diff": _diff,
    "explain": _explain,
    "finish_plan": _finish_plan,
    "health": _health,
    "leftovers": _leftovers,
    "put_image": _put_image,
}
