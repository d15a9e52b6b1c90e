"""Which worker gets which tests, in which order, and what is ended when nobody needs it any more.

A file is one worker's work. Files whose tests want the cluster for themselves are one work together: several workers
would only wait for each other. What takes long comes first, so that no worker begins with it when others are done.
Tests of the cluster come early, beside tests that compute: they mostly wait, and the cluster costs a third of a core as
long as it is there. Those that share it come when none is left that wants it alone, on some of the workers.
"""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

from tests import runs

ALONE = ("kube/test_cluster.py", "fleet/test_cluster_faults.py", "fleet/test_operating.py")
"""Most of their tests use ``whole_cluster``."""
ALONE_TOGETHER = "the cluster, alone"
SHARED = (
    "fleet/test_cluster.py",
    "deploy/",
    "fleet/test_hubs_on_cluster.py",
    "fleet/test_api_server.py",
    "fleet/test_killed_hubs.py",
    "fleet/test_volumes.py",
    "kube/",
)
"""Their tests use ``cluster``, and what they find there may be used by others."""
MOST_SHARING = 3
"""Workers at once that have tests of these."""
ORDER = (
    *ALONE,
    *SHARED,
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


def may_use_cluster(file: str) -> bool:
    """Who is not listed above would find that it has been ended, or wait for those that want it alone."""
    return file.startswith((*ALONE, *SHARED))


def place(file: str) -> int:
    """Where a file below ``tests`` stands in the order."""
    return next((place for place, start in enumerate(ORDER) if file.startswith(start)), len(ORDER))


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid).removeprefix("tests/")
        return ALONE_TOGETHER if file in ALONE else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.is_left(ALONE_TOGETHER) or self.workers_with(*SHARED) >= MOST_SHARING:
            for scope in self.workqueue:
                if not scope.startswith(SHARED):
                    self.workqueue.move_to_end(scope, last=False)
                    break
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if scope.startswith((ALONE_TOGETHER, *SHARED)) and not self.is_left(ALONE_TOGETHER, *SHARED):
            runs.end("tests.kube")

    def is_left(self, *scopes: str) -> bool:
        """Whether a test of these is not done."""
        return any(scope.startswith(scopes) for scope in self.workqueue) or self.workers_with(*scopes) > 0

    def workers_with(self, *scopes: str) -> int:
        """How many have a test of these that is not done."""
        return sum(
            any(scope.startswith(scopes) and not all(tests.values()) for scope, tests in units.items())
            for units in self.assigned_work.values()
        )
