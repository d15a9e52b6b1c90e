"""Runs of which a look would find the same as the last one did, by the kernel's word: there is no need to look."""

from __future__ import annotations

from hitchpost import wire
from hitchpost.hub.changes import ENTRIES, IN_ATTRIB, IN_MODIFY, IN_SELF, Changes
from hitchpost.model.facts import is_elsewhere
from hitchpost.ops.views.observe import Observation

LOST = ""
"""The folder of a report that says that others were lost."""


class StillRuns:
    """Only runs elsewhere: whatever is known of them has come here as a file. Of one that runs here, no file tells that
    a signal has stopped it.

    What comes into the folder of a session is reported to ``sessions``, and looked at. Here is what comes into its
    output. A flood of it wakes nobody: the kernel is asked, by ``read``. A folder that it cannot watch is looked at.
    """

    def __init__(self, sessions: Changes) -> None:
        self._sessions = sessions
        self._outputs = Changes(self._changed, ENTRIES | IN_MODIFY | IN_ATTRIB | IN_SELF)
        self._seen: dict[str, Observation] = {}

    def open(self) -> None:
        self._outputs.open(tells=False)

    def close(self) -> None:
        self._outputs.close()

    def read(self) -> None:
        """Take what the kernel has to report by now."""
        self._outputs.read()

    def has(self, seen: Observation) -> bool:
        return self._seen.get(_output(seen)) is seen and seen.folder not in self._sessions.unwatched

    def watch(self, seen: Observation) -> None:
        """Before a look: what comes after it is reported. It may wait for a disk."""
        if is_elsewhere(seen.record.runtime) and not self._outputs.watches(_output(seen)):
            self._outputs.watch(_output(seen))

    def add(self, seen: Observation) -> None:
        """After a look. While an agent prints, time alone changes what is seen."""
        folder = _output(seen)
        if self._outputs.watches(folder) and not seen.problem and seen.facts.busy_since is None:
            self._seen[folder] = seen

    def forget(self, seen: Observation) -> None:
        """The run is over, or gone."""
        self._seen.pop(_output(seen), None)
        self._outputs.forget(_output(seen))

    def _changed(self, folder: str, name: str) -> None:
        if folder == LOST:
            self._seen.clear()
        self._seen.pop(folder, None)
        if not name:  # the folder itself has gone
            self._outputs.forget(folder)


def _output(seen: Observation) -> str:
    return f"{seen.run_folder}/{wire.OUTPUT}"
