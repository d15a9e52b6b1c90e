"""Which worker gets which tests, in which order, and what is ended when nobody needs it any more.

A file is one worker's work. Files whose tests want the cluster for themselves are one work together: several workers
would only wait for each other. What takes long comes first, so that no worker begins with it when others are done.
Tests of the cluster come early, beside tests that compute: they mostly wait, and the cluster costs something as long
as it is there.
"""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from tests import runs

ALONE = ("kube/test_cluster.py", "fleet/test_cluster_faults.py", "fleet/test_operating.py")
"""Most of their tests use ``whole_cluster``."""
ON_CLUSTER = ("the cluster, alone", "cli/remote/test_commands.py", "deploy/", "fleet/", "kube/")
ORDER = (
    *ALONE,
    "agents/",
    "browser/test_answers.py",
    "runtimes/test_docker_engines.py",
    "runtimes/test_docker.py",
    "runtimes/test_docker_hub.py",
    "cli/test_advice.py",
    "faults/test_crash_consistency.py",
    "security/test_git_wall.py",
    "hub/http/test_schema.py",
    "security/test_files.py",
    "security/test_workspace_injection.py",
    "cli/test_attach.py",
    "faults/test_process.py",
    "fuzz/",
    "model/",
    "faults/test_hub.py",
    "cli/test_hub_commands.py",
    "hub/test_streams.py",
    "browser/",
    "faults/",
    "hub/",
    "truth/",
    "cli/",
    "runtimes/",
    "security/",
    "keeper/",
    "ops/",
)


def place(file: str) -> int:
    """Where a file below ``tests`` stands in the order."""
    return next((place for place, start in enumerate(ORDER) if file.startswith(start)), len(ORDER))


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid).removeprefix("tests/")
        return ON_CLUSTER[0] if file in ALONE else file

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if scope.startswith(ON_CLUSTER) and not self.is_left(ON_CLUSTER):
            runs.end("tests.kube")

    def is_left(self, scopes: tuple[str, ...]) -> bool:
        """Whether a test of these is not done."""
        if any(scope.startswith(scopes) for scope in self.workqueue):
            return True
        return any(
            not all(tests.values())
            for units in self.assigned_work.values()
            for scope, tests in units.items()
            if scope.startswith(scopes)
        )
