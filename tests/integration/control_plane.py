"""A control plane without machines: etcd and the API server as they are built, on loopback, with two users."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import cached
from pai_install.components.model import Selection
from pai_install.components.modules import Modules
from tests.addons import ROOT
from tests.ansible_path import filter_plugin
from tests.ports import free_ports

Json = dict[str, Any]
# name of a token -> user, groups
USERS = {
    "admin-token": ("admin", "system:masters"),
    "alice-token": ("alice", "pai:users"),
    "hived-token": ("system:serviceaccount:pai-hived:hived", "system:serviceaccounts"),
}

ADMIN_CONFIG = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {authority}
    server: https://127.0.0.1:{port}
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: kubernetes-admin
  name: kubernetes-admin@kubernetes
current-context: kubernetes-admin@kubernetes
kind: Config
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
"""


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """Name -> program of Kubernetes and etcd; skips where they were not fetched yet."""
    catalogue = load_catalogue()
    whole, source = resolve(catalogue), Modules(catalogue)
    picks = tuple(pick for pick in whole.picks if pick.component in ("kubernetes", "etcd"))
    found: dict[str, Path] = {}
    for pick in picks:
        entry = cached(Selection(whole.kubernetes_version, "modules", (pick,)), source)[pick]
        if entry is None:
            pytest.skip(f"{pick.component} is not in the component cache: pai-install components fetch")
        key = source.programs_key(pick)
        found |= {path.name: path for path in (entry.folder.parent / key).iterdir()}
    return found


@dataclass
class Api:
    """The API server, asked with one user's token. acts_as: the user in whose name it asks. extra: a header."""

    port: int
    folder: Path
    token: str = "admin-token"
    acts_as: str = ""
    extra: str = ""

    @property
    def authority(self) -> Path:
        return self.folder / "certificates/apiserver.crt"

    def as_(self, token: str) -> Api:
        return Api(self.port, self.folder, token)

    def in_the_name_of(self, user: str) -> Api:
        return replace(self, acts_as=user)

    def with_header(self, header: str) -> Api:
        return replace(self, extra=header)

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        """Raises HTTPError."""
        found: Json = json.loads(self.text(method, path, body, kind))
        return found

    def text(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> str:
        """An answer that is not JSON. Raises HTTPError."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        if self.acts_as:
            headers["Impersonate-User"] = self.acts_as
        if self.extra:
            name, _, value = self.extra.partition(": ")
            headers[name] = value
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, headers, method=method)
        context = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310 # a server of ours
            return str(answer.read().decode())

    def apply(self, entry: Json) -> Json:
        """Server-side, as pai-install does."""
        path = f"{path_of(entry)}/{entry['metadata']['name']}?fieldManager=pai-install&force=true"
        return self.ask("PATCH", path, entry, "application/apply-patch+yaml")

    def create(self, entry: Json, query: str = "") -> str:
        """Makes it; why it is refused, else empty."""
        try:
            self.ask("POST", f"{path_of(entry)}{query}", entry)
        except urllib.error.HTTPError as error:
            return str(json.load(error)["message"])
        return ""

    @property
    def admin_config(self) -> Path:
        """A kubeconfig with a client certificate of the administrator, in kubeadm's form."""
        files: dict[str, str | Path] = {"authority": self.authority, "cert": "admin.crt", "key": "admin.key"}
        data = {name: base64.b64encode((self.folder / file).read_bytes()).decode() for name, file in files.items()}
        path = self.folder / "admin.conf"
        path.write_text(ADMIN_CONFIG.format(port=self.port, **data))
        return path

    def kubeconfig(self, name: str, token: str) -> Path:
        path = self.folder / f"{name}.kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": name}}],
            "current-context": "here",
        }
        path.write_text(json.dumps(content))
        return path


_PLURALS = {"PriorityClass": "priorityclasses", "NetworkPolicy": "networkpolicies"}
_PLURALS |= {"Topology": "topologies", "WorkloadPriorityClass": "workloadpriorityclasses"}
_PLURALS |= {f"{kind}AdmissionPolicy": f"{kind.lower()}admissionpolicies" for kind in ("Validating", "Mutating")}


def path_of(entry: Json) -> str:
    """Where objects of its kind are."""
    version, namespace = entry["apiVersion"], entry["metadata"].get("namespace")
    plural = _PLURALS.get(entry["kind"], f"{entry['kind'].lower()}s")
    base = "/api/v1" if version == "v1" else f"/apis/{version}"
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


def create_system_pod(api: Api, *containers: str) -> None:
    """Makes the pod `component` outside of all groups. No machine runs it."""
    place = {"namespace": "kube-system"}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", **place}})
    spec = {"containers": [{"name": name, "image": "example.com/component:1"} for name in containers]}
    assert (
        api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "component", **place}, "spec": spec}) == ""
    )


@contextmanager
def running(words: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program until the end of the block."""
    with log.open("ab") as output:
        program = subprocess.Popen(words, stdout=output, stderr=output)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


@dataclass(frozen=True)
class Servers:
    """A control plane that runs. etcd: its port. program: the API server."""

    api: Api
    etcd: int
    program: subprocess.Popen[bytes]


@contextmanager
def started(programs: dict[str, Path], folder: Path) -> Iterator[Servers]:
    """An API server with its own etcd; no node, no controller."""
    etcd, peer, port = free_ports(3)
    with ExitStack() as stack:
        stack.enter_context(running(store_words(programs["etcd"], folder, etcd, peer), folder / "etcd.log"))
        write_credentials(folder)
        _wait_for_port(etcd)  # an API server that finds none asks again a second later, and then more seldom
        words = server_words(programs["kube-apiserver"], folder, etcd, port)
        found = Servers(Api(port, folder), etcd, stack.enter_context(running(words, folder / "kube-apiserver.log")))
        _wait(found)
        yield found


def store_words(program: Path, folder: Path, port: int, peer: int) -> list[str | Path]:
    """The command of etcd."""
    return [
        *(program, f"--data-dir={folder}/etcd", f"--listen-client-urls=http://127.0.0.1:{port}"),
        *(f"--advertise-client-urls=http://127.0.0.1:{port}", f"--listen-peer-urls=http://127.0.0.1:{peer}"),
        "--unsafe-no-fsync",  # nothing of it outlives the tests
        *("--max-txn-ops=100000", "--max-request-bytes=100000000"),  # all changes of a module are undone at once
    ]


def server_words(program: Path, folder: Path, etcd: int, port: int) -> list[str | Path]:
    """The command of the API server. etcd: its port."""
    key = folder / "service-account.key"
    return [
        *(program, f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={port}"),
        "--allow-privileged=true",  # as kubeadm has it
        *("--bind-address=127.0.0.1", f"--cert-dir={folder}/certificates", "--authorization-mode=RBAC"),
        *(f"--token-auth-file={folder}/tokens.csv", "--service-account-issuer=https://here"),
        f"--authentication-config={folder}/authentication.yaml",
        f"--client-ca-file={folder}/clients.crt",
        *(f"--service-account-signing-key-file={key}", f"--service-account-key-file={key}"),
        # their objects are made by controllers and kubelets, which are not here
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ]


def write_credentials(folder: Path) -> None:
    """Whom the API server lets in, and the key of its service accounts."""
    key = folder / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    users = [f'{token},{user},{token},"{groups}"' for token, (user, groups) in USERS.items()]
    (folder / "tokens.csv").write_text("\n".join(users) + "\n")
    let_in(folder, [])
    certify(folder)


def certify(folder: Path) -> None:
    """Makes an authority of clients, and a certificate of the administrator."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(*new, "-x509", "-keyout", "clients.key", "-out", "clients.crt", "-subj", "/CN=clients", "-days", "2")
    openssl(*new, "-keyout", "admin.key", "-out", "admin.csr", "-subj", "/O=system:masters/CN=kubernetes-admin")
    sign = ("x509", "-req", "-in", "admin.csr", "-CA", "clients.crt", "-CAkey", "clients.key", "-CAcreateserial")
    openssl(*sign, "-out", "admin.crt", "-days", "1")


def let_in(folder: Path, jwt: Sequence[Json]) -> None:
    """Writes whose tokens the API server takes, as the role control_plane does, in one step."""
    anonymous = (ROOT / "roles/control_plane/files/authentication.yaml").read_text().rstrip("\n")
    config = filter_plugin("pai_kubeadm").authentication_config(anonymous, jwt)
    (folder / "authentication.new").write_text(config)
    (folder / "authentication.new").rename(folder / "authentication.yaml")


def _wait_for_port(port: int) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            assert time.monotonic() < end, f"nothing listens on port {port}"
            time.sleep(0.1)
        else:
            return


def _wait(servers: Servers) -> None:
    """Returns once the API server has made its own objects."""
    end = time.monotonic() + 120
    while True:
        try:
            servers.api.text("GET", "/readyz")
        except OSError:
            if servers.program.poll() is not None or time.monotonic() > end:
                log = (servers.api.folder / "kube-apiserver.log").read_text(errors="replace")
                pytest.fail(f"the API server does not answer\n{log[-2000:]}")
            time.sleep(0.2)
        else:
            return
