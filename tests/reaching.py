"""Ways to a hub from elsewhere: certificates, an SSH tunnel and nginx, all real and all on loopback."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import eventually

NAMES = "DNS:localhost,IP:127.0.0.1,IP:127.0.0.2"
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {cert}; ssl_certificate_key {key};
    {location}
  }}
}}
"""


def certificate(folder: Path, name: str = "tls", names: str = NAMES) -> tuple[str, str]:
    """A certificate that signs itself, for loopback or other ``names``, and its key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = [
        "openssl",
        "req",
        "-x509",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        "-addext",
        f"subjectAltName={names}",
    ]
    words += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(words, check=True, capture_output=True)
    return str(cert), str(key)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


@contextmanager
def running(argv: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server in the foreground, as soon as it listens."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:

        def listens() -> bool:
            if process.poll() is not None:
                assert process.stderr is not None
                raise RuntimeError(f"{argv[0]} has ended: {process.stderr.read().decode()}")
            return answers(port)

        eventually(listens, 60, f"{argv[0]} to listen")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def recipe(page: str, fence: str) -> str:
    """The first block of this kind in a page of the docs: what is written there is what is tested."""
    text = (Path(__file__).parent.parent / "docs" / page).read_text()
    return text.partition(f"```{fence}\n")[2].partition("```")[0]


@contextmanager
def nginx(folder: Path, port: int, hub_port: int) -> Iterator[None]:
    cert, key = certificate(folder, "nginx")
    location = recipe("remote.md", "nginx").replace("8750", str(hub_port))
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, cert=cert, key=key, location=location))
    with running(["/usr/sbin/nginx", "-c", str(config), "-p", str(folder)], port):
        yield


@contextmanager
def tunnel(folder: Path, port: int, hub_port: int) -> Iterator[None]:
    """``ssh -L`` through an SSH server of its own."""
    host_key, user_key, keys = folder / "host", folder / "user", folder / "keys"
    for path in (host_key, user_key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    keys.write_text(user_key.with_suffix(".pub").read_text())
    ssh_port = free_port()
    config = folder / "sshd_config"
    config.write_text(
        f"Port {ssh_port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\nAuthorizedKeysFile {keys}\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
    )
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    with running(["/usr/sbin/sshd", "-D", "-e", "-f", str(config)], ssh_port):
        words = ["ssh", "-F", "/dev/null", "-N", "-L", f"127.0.0.1:{port}:localhost:{hub_port}", "-p", str(ssh_port)]
        words += ["-i", str(user_key), "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder}/known"]
        with running([*words, f"{getpass.getuser()}@127.0.0.1"], port):
            yield
