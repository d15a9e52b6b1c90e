"""A control plane and nodes on one machine, and what can happen to them."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kube import images, keys, machines, programs
from tests.kube.machines import Network, launch, run
from tests.support import Process, end, eventually

ADMIN = "admin"
STORAGE, NEVER = "hitchpost-test", "hitchpost-never"
"""Classes of storage: a claim of the first is bound at once, one of the second never."""
NODE_DAEMONS = ("containerd", "kubelet", "kube-proxy")
CONTROL_DAEMONS = ("etcd", "apiserver", "controllers", "scheduler", "volumes")
READY_S = 120


@dataclass(slots=True)
class Cluster:
    """All that it knows is in its folder, so every process can use it: ``Cluster.at(folder)``."""

    folder: Path
    programs: Path
    network: Network
    token: str
    """An administrator's, for who cannot show a certificate."""

    @property
    def mark(self) -> str:
        return self.folder.name

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(name for name in self.network.machines if name.startswith("n"))

    @property
    def server(self) -> str:
        return f"https://{self.network.address('cp')}:6443"

    @property
    def authority(self) -> Path:
        return self.folder / "keys/ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """An administrator's. It works on this machine and in the namespaces of the cluster."""
        return self.folder / f"keys/{ADMIN}.kubeconfig"

    @classmethod
    def at(cls, folder: Path) -> Cluster:
        found = json.loads((folder / "cluster.json").read_bytes())
        network = Network(folder.name, found["base"], found["nodes"])
        return cls(folder, Path(found["programs"]), network, found["token"])

    # How it comes and goes.

    @classmethod
    def start(cls, nodes: int = 2) -> Cluster:
        """Begin a cluster, which is ready then. It ends with this process, if nobody closes it before."""
        built = programs.place()
        assert built, programs.why_not()
        machines.sweep()
        folder = machines.new_folder()
        machines.guard(folder)
        try:
            with machines.one_at_a_time(built):
                network = Network(folder.name, machines.free_base(), nodes)
                network.make()
            whole = {"base": network.base, "nodes": nodes, "programs": str(built), "token": secrets.token_hex(16)}
            (folder / "cluster.json").touch(mode=0o600)
            (folder / "cluster.json").write_text(json.dumps(whole))
            cluster = cls.at(folder)
            cluster._begin()
        except BaseException:
            _close(folder)
            raise
        return cluster

    def close(self) -> None:
        """End it, and leave nothing."""
        _close(self.folder)

    def _begin(self) -> None:
        for name in ("logs", "pids", "volumes", "images"):
            (self.folder / name).mkdir()
        machines.make_cgroups(self.mark, ["daemons", *self.nodes])
        # what it remembers of a cluster it keeps in the home folder
        (self.folder / "kubectl").write_text(
            f'#!/bin/sh\nHOME={self.folder} exec {self.programs}/bin/kubectl --kubeconfig {self.kubeconfig} "$@"\n'
        )
        (self.folder / "kubectl").chmod(0o755)
        self._make_keys()
        for image in images.images(self.programs / "img").values():
            image.write(self.folder / "images" / f"{image.name.replace('/', '-').replace(':', '-')}.tar")
        for machine in self.network.machines:
            self._make_machine(machine)
        for daemon in ("etcd", "apiserver"):
            self.begin(daemon, "cp")
        with ThreadPoolExecutor() as pool:
            for made in [pool.submit(self._fill, node) for node in self.nodes]:
                made.result()
        self.until_served()
        for daemon in ("controllers", "scheduler"):
            self.begin(daemon, "cp")
        for node in self.nodes:
            for daemon in ("kubelet", "kube-proxy"):
                self.begin(daemon, node)
        self._make_storage()
        self.begin("volumes", "cp")
        self.until_ready()
        eventually(lambda: self.exists("serviceaccount", "default"), what="the account of pods")

    def _make_keys(self) -> None:
        authority = keys.Authority.make(self.folder / "keys")
        control = self.network.address("cp")
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1")
        authority.issue("apiserver", "kube-apiserver", hosts=(control, self.network.first_service, *names))
        authority.issue("front", "front", hosts=("127.0.0.1", "localhost", self.network.host))
        people = {
            ADMIN: ("admin", "system:masters"),
            "controllers": ("system:kube-controller-manager",),
            "scheduler": ("system:kube-scheduler",),
            "kube-proxy": ("system:kube-proxy",),
        }
        for file, (name, *groups) in people.items():
            authority.issue(file, name, tuple(groups))
        for node in self.nodes:
            hosts = (self.network.address(node), node)
            authority.issue(node, f"system:node:{node}", ("system:nodes",), hosts)
        for file in (*people, *self.nodes):
            self.write_kubeconfig(self.folder / f"keys/{file}.kubeconfig", self.server, file)
        (self.folder / "keys/tokens").write_text(f'{self.token},token-admin,token-admin,"system:masters"\n')

    def write_kubeconfig(self, path: Path, server: str, holder: str = "", token: str = "") -> None:
        """For the holder of a certificate, or of a token."""
        pair = {
            "client-certificate": f"{self.folder}/keys/{holder}.crt",
            "client-key": f"{self.folder}/keys/{holder}.key",
        }
        keys.kubeconfig(path, server, self.authority, {"token": token} if token else pair)

    def _make_machine(self, machine: str) -> None:
        """A process that holds its namespaces. What daemons write to ``/var`` and ``/run`` stays there."""
        place = self.folder / machine
        for name in ("var", "work"):
            (place / name).mkdir(parents=True)
        steps = [
            f"hostname {machine}",
            f"mount -t overlay overlay -o lowerdir=/var,upperdir={place}/var,workdir={place}/work /var",
            "mount -t tmpfs -o mode=755 tmpfs /run",
            "mkdir /run/netns /run/lock",
        ]
        for setting, value in machines.SETTINGS.items():
            file = place / setting.replace("/", ".")
            file.write_text(f"{value}\n")
            steps.append(f"if [ -e /proc/sys/{setting} ]; then mount --bind {file} /proc/sys/{setting}; fi")
        script = " && ".join([*steps, f"touch {place}/ready", "exec sleep infinity"])
        space = machines.NAMESPACES / self.network.namespace(machine)
        unshare = ["nsenter", f"--net={space}", "unshare", "-m", "-u", "--propagation", "private", "sh", "-c", script]
        self._launch("machine", machine, unshare)
        self._until((place / "ready").exists, "machine", machine)

    def _fill(self, node: str) -> None:
        """Everything that a node needs before kubelet comes."""
        place, network = self.folder / node, self.network
        number = int(node[1:])
        for name in ("cni", "kubelet", "plugins"):
            (place / name).mkdir()
        default = json.loads(run(self.programs / "bin/ctr", "oci", "spec"))
        (place / "spec.json").write_text(json.dumps(images.base_spec(default)))
        (place / "containerd.toml").write_text(self._containerd(place))
        bridge = {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "dataDir": f"{place}/addresses",
                "ranges": [[{"subnet": network.pods(number)}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        plugins = {
            "cniVersion": "0.4.0",
            "name": "test",
            "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
        }
        (place / "cni/10-test.conflist").write_text(json.dumps(plugins))
        (place / "kubelet.json").write_text(json.dumps(self._kubelet(node)))
        (place / "kube-proxy.json").write_text(json.dumps(self._kube_proxy(node)))
        self.begin("containerd", node)
        for archive in sorted((self.folder / "images").iterdir()):
            run(*self.ctr(node), "images", "import", archive)

    def _containerd(self, place: Path) -> str:
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        return f"""version = 2
root = "{place}/containerd"
state = "/run/containerd/state"
[grpc]
  address = "{place}/containerd.sock"
[{cri}]
  sandbox_image = "{images.PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [{cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{place}/spec.json"
  [{cri}.cni]
    bin_dir = "{self.programs}/cni"
    conf_dir = "{place}/cni"
"""

    def _kubelet(self, node: str) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.mark}/{node}",
            "failSwapOn": False,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.authority)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{self.folder}/keys/{node}.crt",
            "tlsPrivateKeyFile": f"{self.folder}/keys/{node}.key",
            "resolvConf": "",
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 4,
            "evictionHard": {"memory.available": "100Mi"},
            "oomScoreAdj": 0,
            "serializeImagePulls": False,
        }

    def _kube_proxy(self, node: str) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "clusterCIDR": self.network.all_pods,
            "hostnameOverride": node,
            "clientConnection": {"kubeconfig": f"{self.folder}/keys/kube-proxy.kubeconfig"},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "iptables": {"minSyncPeriod": "0s"},
        }

    def _make_storage(self) -> None:
        for name, provisioner in ((STORAGE, "hitchpost.test/folders"), (NEVER, "kubernetes.io/no-provisioner")):
            self.apply(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": name},
                    "provisioner": provisioner,
                    "reclaimPolicy": "Delete",
                }
            )

    # Its daemons.

    def inside(self, machine: str) -> list[str]:
        """What a command begins with that runs on a machine of the cluster."""
        return ["nsenter", "-t", str(self._pid("machine", machine)), "--net", "--mount", "--uts", "--"]

    def ctr(self, node: str) -> list[str]:
        return [f"{self.programs}/bin/ctr", "-a", f"{self.folder}/{node}/containerd.sock", "-n", "k8s.io"]

    def words(self, daemon: str, machine: str) -> list[str]:
        """The command of a daemon."""
        keys_, bin_, place = f"{self.folder}/keys", self.programs / "bin", self.folder / machine
        address = self.network.address(machine)
        if daemon == "etcd":
            url = "http://127.0.0.1:2379"
            options = [f"data-dir={place}/etcd", f"listen-client-urls={url}", f"advertise-client-urls={url}"]
            options += ["unsafe-no-fsync", "log-level=warn"]
        elif daemon == "apiserver":
            daemon = "kube-apiserver"
            options = [
                "etcd-servers=http://127.0.0.1:2379",
                f"bind-address={address}",
                f"advertise-address={address}",
                "insecure-port=0",
                f"tls-cert-file={keys_}/apiserver.crt",
                f"tls-private-key-file={keys_}/apiserver.key",
                f"client-ca-file={keys_}/ca.crt",
                f"token-auth-file={keys_}/tokens",
                f"service-account-key-file={keys_}/accounts.pub",
                f"service-account-signing-key-file={keys_}/accounts.key",
                "service-account-issuer=https://kubernetes.default.svc",
                f"service-cluster-ip-range={self.network.services}",
                "authorization-mode=Node,RBAC",
                f"kubelet-client-certificate={keys_}/{ADMIN}.crt",
                f"kubelet-client-key={keys_}/{ADMIN}.key",
                f"kubelet-certificate-authority={keys_}/ca.crt",
                "kubelet-preferred-address-types=InternalIP",
                "allow-privileged",
                "enable-admission-plugins=NodeRestriction",
                "shutdown-delay-duration=0s",
            ]
        elif daemon == "controllers":
            daemon = "kube-controller-manager"
            options = [
                f"kubeconfig={keys_}/controllers.kubeconfig",
                f"service-account-private-key-file={keys_}/accounts.key",
                f"root-ca-file={keys_}/ca.crt",
                "use-service-account-credentials",
                "leader-elect=false",
                "node-monitor-period=1s",
                "node-monitor-grace-period=5s",
                f"flex-volume-plugin-dir={place}/plugins",
            ]
        elif daemon == "scheduler":
            daemon = "kube-scheduler"
            options = [f"kubeconfig={keys_}/scheduler.kubeconfig", "leader-elect=false"]
        elif daemon == "containerd":
            return [str(bin_ / daemon), "-c", f"{place}/containerd.toml"]
        elif daemon == "kubelet":
            options = [
                f"config={place}/kubelet.json",
                f"kubeconfig={keys_}/{machine}.kubeconfig",
                f"hostname-override={machine}",
                f"node-ip={address}",
                "container-runtime=remote",
                f"container-runtime-endpoint=unix://{place}/containerd.sock",
                f"root-dir={place}/kubelet",
                f"volume-plugin-dir={place}/plugins",
            ]
        elif daemon == "kube-proxy":
            options = [f"config={place}/kube-proxy.json"]
        else:
            assert daemon == "volumes", daemon
            # the interpreter, and not the link to it, does not find the project's packages
            return ["env", "-C", str(programs.ROOT), sys.executable, "-m", "tests.kube.volumes", str(self.folder)]
        return [str(bin_ / daemon), *(f"--{option}" for option in options)]

    def begin(self, daemon: str, machine: str) -> None:
        """Start a daemon that does not run."""
        path = f"PATH={self.programs}/bin:{machines.clean()['PATH']}"
        self._launch(daemon, machine, [*self.inside(machine), "env", path, *self.words(daemon, machine)])
        if daemon == "containerd":
            asked = [*self.ctr(machine), "version"]
            self._until(lambda: subprocess.run(asked, capture_output=True).returncode == 0, daemon, machine)

    def kill(self, daemon: str, machine: str = "cp", how: signal.Signals = signal.SIGKILL) -> None:
        """SIGKILL and wait for its end, or SIGSTOP, or SIGCONT."""
        os.kill(self._pid(daemon, machine), how)
        if how in (signal.SIGKILL, signal.SIGTERM):
            eventually(lambda: not self.runs(daemon, machine), what=f"the end of {daemon} on {machine}")

    def restart(self, daemon: str, machine: str = "cp") -> None:
        self.kill(daemon, machine)
        self.begin(daemon, machine)
        if daemon == "apiserver":
            self.until_served()

    def runs(self, daemon: str, machine: str = "cp") -> bool:
        return machines.marked(self._mark_of(daemon, machine)) is not None

    def log(self, daemon: str, machine: str = "cp") -> str:
        return (self.folder / f"logs/{machine}.{daemon}").read_text(errors="replace")

    def _launch(self, daemon: str, machine: str, argv: list[str]) -> None:
        process = launch(self.mark, argv, self.folder / f"logs/{machine}.{daemon}")
        machines.write_mark(self._mark_of(daemon, machine), process.pid)

    def _mark_of(self, daemon: str, machine: str) -> Path:
        return self.folder / f"pids/{machine}.{daemon}"

    def _pid(self, daemon: str, machine: str) -> int:
        found = machines.marked(self._mark_of(daemon, machine))
        if found is None:
            raise machines.DaemonEnded(f"{daemon} on {machine} has ended: {self.log(daemon, machine)[-2000:]}")
        return found.pid

    def _until(self, condition: Callable[[], bool], daemon: str, machine: str) -> None:
        eventually(lambda: condition() or not self._pid(daemon, machine), READY_S, f"{daemon} on {machine}")

    # What can be asked of it.

    def kubectl(self, *words: str, stdin: str = "", check: bool = True, timeout_s: float = 60) -> str:
        done = subprocess.run(
            [self.folder / "kubectl", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=machines.clean(),
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def apply(self, *things: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": things}))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        found = json.loads(self.kubectl("get", kind, name, "-n", namespace, "-o", "json"))
        assert isinstance(found, dict)
        return found

    def exists(self, kind: str, name: str, namespace: str = "default") -> bool:
        return bool(self.kubectl("get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "name"))

    def phase(self, pod: str, namespace: str = "default") -> str:
        return str(self.get("pod", pod, namespace)["status"].get("phase", ""))

    def ready(self, node: str) -> str:
        """True, False or Unknown, in Kubernetes' words."""
        conditions = self.get("node", node)["status"].get("conditions", [])
        return next((str(found["status"]) for found in conditions if found["type"] == "Ready"), "")

    def until_served(self) -> None:
        self._until(lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", "apiserver", "cp")

    def until_ready(self) -> None:
        """Every node takes pods."""

        def all_ready() -> bool:
            said = self.kubectl("get", "nodes", "-o", "json", check=False)
            found = json.loads(said)["items"] if said else []
            good = [node for node in found if not node["spec"].get("taints") and not node["spec"].get("unschedulable")]
            states = [one["status"] for node in good for one in node["status"]["conditions"] if one["type"] == "Ready"]
            return states == ["True"] * len(self.nodes)

        eventually(all_ready, READY_S, "nodes that are ready")

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A new one, ready for pods. Its pods are gone at once afterwards."""
        name = f"test-{secrets.token_hex(4)}"
        self.kubectl("create", "namespace", name)
        try:
            eventually(lambda: self.exists("serviceaccount", "default", name), what="the account of pods")
            yield name
        finally:
            self.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0", "--wait=false")
            self.kubectl("delete", "namespace", name, "--wait=false")

    def run_pod(
        self, name: str, *command: str, namespace: str = "default", image: str = images.SESSION, **spec: Any
    ) -> None:
        """A pod with one container, which runs once."""
        container = {"name": "main", "image": image, "command": list(command), **spec.pop("container", {})}
        whole = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
        meta = {"name": name, "namespace": namespace}
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": whole})

    # What can happen to it.

    def cut(self, machine: str) -> None:
        """Nothing reaches it, and it reaches nothing, until ``heal``. It goes on."""
        self.network.cut(machine)

    def heal(self, machine: str) -> None:
        self.network.heal(machine)

    def cordon(self, node: str) -> None:
        self.kubectl("cordon", node)

    def uncordon(self, node: str) -> None:
        self.kubectl("uncordon", node)

    def taint(self, node: str, key: str, effect: str = "NoExecute") -> None:
        self.kubectl("taint", "node", node, f"{key}=test:{effect}", "--overwrite")

    def untaint(self, node: str, key: str) -> None:
        self.kubectl("taint", "node", node, f"{key}-")

    def evict(self, pod: str, namespace: str = "default") -> None:
        """As ``kubectl drain`` does: a disruption budget may forbid it."""
        eviction = {
            "apiVersion": "policy/v1beta1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def lose(self, node: str) -> None:
        """The machine is gone for good, and an administrator has said so. ``mend`` brings it back."""
        self.cut(node)
        self.kubectl("delete", "node", node)

    def forget_past(self) -> None:
        """Who asks for changes since a revision before this is told 410 Gone."""
        with_etcd = [*self.inside("cp"), str(self.programs / "bin/etcdctl"), "--endpoints=http://127.0.0.1:2379"]
        said = json.loads(run(*with_etcd, "endpoint", "status", "-w", "json"))
        run(*with_etcd, "compact", str(said[0]["Status"]["header"]["revision"]))
        self.restart("apiserver")  # it remembers the last of them itself

    def volume(self, claim: str, namespace: str = "default") -> Path:
        """The folder of a bound claim, on this machine."""
        name = self.get("pvc", claim, namespace)["spec"]["volumeName"]
        return Path(self.get("pv", name)["spec"]["hostPath"]["path"])

    def break_volume(self, claim: str, namespace: str = "default") -> None:
        """No new pod can mount it, until ``mend_volume``."""
        folder = self.volume(claim, namespace)
        folder.rename(folder.with_suffix(".broken"))

    def mend_volume(self, claim: str, namespace: str = "default") -> None:
        folder = self.volume(claim, namespace)
        folder.with_suffix(".broken").rename(folder)

    def mend(self) -> None:
        """As it was in the beginning, but for what is in its namespaces."""
        for machine in self.network.machines:
            self.heal(machine)
        for daemon in CONTROL_DAEMONS:
            self._see_to(daemon, "cp")
        self.until_served()
        for node in self.nodes:
            for daemon in NODE_DAEMONS:
                self._see_to(daemon, node)
            if not self.exists("node", node):
                self.restart("kubelet", node)
                eventually(lambda node=node: self.exists("node", node), what=f"the node {node}")  # type: ignore[misc]
            self.uncordon(node)
            for taint in self.get("node", node)["spec"].get("taints", []):
                if not taint["key"].startswith("node.kubernetes.io/"):
                    self.untaint(node, taint["key"])
        self.until_ready()

    def _see_to(self, daemon: str, machine: str) -> None:
        if self.runs(daemon, machine):
            self.kill(daemon, machine, signal.SIGCONT)
        else:
            self.begin(daemon, machine)

    def account_token(self, account: str, namespace: str) -> str:
        """Of a service account: with it, tests see the cluster with its rights."""

        def found() -> str:
            secrets_ = self.get("serviceaccount", account, namespace).get("secrets", [])
            if not secrets_:
                return ""
            kept = self.get("secret", secrets_[0]["name"], namespace)
            return base64.b64decode(kept["data"]["token"]).decode()

        return eventually(found, what=f"the token of {account}")


def _close(folder: Path) -> None:
    watching = machines.marked(folder / "guard")
    machines.reap(folder.name)
    if watching:
        end([], at_once=[watching])


def memory(cluster: Cluster) -> dict[str, int]:
    """How many bytes each program of the cluster has to itself or shares, by its name."""
    found: dict[str, int] = {}
    for pid in machines.processes(cluster.mark):
        process = Process.read(pid)
        if process is None:
            continue
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        share = next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
        name = Path(process.argv[0]).name
        found[name] = found.get(name, 0) + share
    return found
