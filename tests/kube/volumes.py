"""Volumes for claims: a folder each, below the cluster's. Every node sees it, so a claim moves with its pod.

Run as ``python -m tests.kube.volumes FOLDER``, on the control plane's machine, until it is ended. Nothing enforces that
a volume is used on one node at a time: with folders of one machine, Kubernetes does not either.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.core_v1 import (
    HostPathVolumeSource,
    ObjectReference,
    PersistentVolumeSpec,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim

from tests.kube.cluster import STORAGE, Cluster

AGAIN_S = 0.2
"""After this it asks again, when the API server did not answer."""


def look(client: Client, folders: Path) -> None:
    """Make what is wanted, and remove what is no longer."""
    volumes = {found.metadata.name: found for found in client.list(PersistentVolume) if found.metadata}
    for claim in client.list(PersistentVolumeClaim, namespace="*"):
        assert claim.metadata is not None
        assert claim.spec is not None
        name = f"pvc-{claim.metadata.uid}"
        if claim.spec.storageClassName == STORAGE and not claim.spec.volumeName and name not in volumes:
            make(client, claim, name, folders)
    for made, volume in volumes.items():
        ours = volume.spec is not None and volume.spec.storageClassName == STORAGE
        if ours and made and volume.status is not None and volume.status.phase == "Released":
            client.delete(PersistentVolume, made)
            for suffix in ("", ".broken"):
                shutil.rmtree(folders / f"{made}{suffix}", ignore_errors=True)


def make(client: Client, claim: PersistentVolumeClaim, name: str, folders: Path) -> None:
    assert claim.metadata is not None
    assert claim.spec is not None
    folder = folders / name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    wanted: Any = claim.spec.resources
    reference = ObjectReference(
        apiVersion="v1",
        kind="PersistentVolumeClaim",
        name=claim.metadata.name,
        namespace=claim.metadata.namespace,
        uid=claim.metadata.uid,
    )
    spec = PersistentVolumeSpec(
        accessModes=claim.spec.accessModes,
        capacity=wanted.requests,
        claimRef=reference,
        hostPath=HostPathVolumeSource(path=str(folder), type="Directory"),
        persistentVolumeReclaimPolicy="Retain",
        storageClassName=STORAGE,
    )
    client.create(PersistentVolume(metadata=ObjectMeta(name=name), spec=spec))


def watch(client: Client, kind: type[PersistentVolume] | type[PersistentVolumeClaim], changed: threading.Event) -> None:
    everywhere: dict[str, Any] = {"namespace": "*"} if kind is PersistentVolumeClaim else {}
    while True:
        try:
            for _ in client.watch(kind, **everywhere):
                changed.set()
        except (ApiError, httpx2.HTTPError) as error:
            print(error, file=sys.stderr, flush=True)
        time.sleep(AGAIN_S)
        changed.set()


def main() -> None:
    cluster = Cluster.at(Path(sys.argv[1]))
    client = Client(config=KubeConfig.from_file(str(cluster.kubeconfig)))
    changed = threading.Event()
    for kind in (PersistentVolume, PersistentVolumeClaim):
        threading.Thread(target=watch, args=(client, kind, changed), daemon=True).start()
    while True:
        changed.wait()
        changed.clear()
        try:
            look(client, cluster.folder / "volumes")
        except (ApiError, httpx2.HTTPError) as error:
            print(error, file=sys.stderr, flush=True)
            time.sleep(AGAIN_S)
            changed.set()


if __name__ == "__main__":
    main()
