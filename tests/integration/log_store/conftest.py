"""The programs of the store of logs, from the component cache, as the add-on starts them, on loopback."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import fetch
from pai_install.components.modules import Modules
from pai_install.components.store import Store, default_cache
from pai_install.monitoring.log_store import PATH, Parameters
from pai_install.ports import LOG_COLLECTOR_PORT, LOG_STORE_PORT
from pai_install.registry.compile import COLLECTOR_NAME, LOGS_NAME, SCRAPER_NAME
from pai_install.registry.identity import Identity, make_identity
from pai_install.registry.model import ServedNames
from tests.addons import ROOT
from tests.integration.control_plane import running
from tests.ports import free_ports
from tests.waiting import until

PODS = "/var/log/pods"


@dataclass(frozen=True)
class Programs:
    """store, collector: programs. front: the words of a program with its libraries."""

    store: Path
    collector: Path
    front: tuple[str, ...]


@pytest.fixture(scope="session")
def log_programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    catalogue = load_catalogue()
    selection, source = resolve(catalogue, needed=["victoria-logs", "haproxy"]), Modules(catalogue)
    fetch(selection, source)
    picks, cache = {pick.component: pick for pick in selection.picks}, Store(default_cache())
    built = cache.lookup(source.programs_key(picks["victoria-logs"]), print)
    image = cache.lookup(source.key(picks["haproxy"]), print)
    assert built is not None
    assert image is not None
    root = unpacked(image.images[0].layout, tmp_path_factory.mktemp("front"))
    (loader,) = (root / "usr/lib").rglob("ld-linux*")
    front = (str(loader), "--library-path", str(loader.parent), str(root / "usr/local/sbin/haproxy"))
    return Programs(built.path("victoria-logs"), built.path("vlagent"), front)


def unpacked(layout: Path, target: Path) -> Path:
    """The files of an image."""

    def blob(digest: str) -> Path:
        return layout / "blobs" / digest.replace(":", "/")

    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    for layer in json.loads(blob(described["digest"]).read_text())["layers"]:
        with tarfile.open(blob(layer["digest"])) as archive:
            archive.extractall(target, filter="tar")
    return target


def add_on() -> Mapping[str, Any]:
    """Name -> container of the add-on."""
    found = yaml.safe_load_all((ROOT / "addons/logs/tests/plain.expected.yml").read_text())
    pods = [it["spec"]["template"]["spec"] for it in found if it["kind"] in ("Deployment", "DaemonSet")]
    return {it["name"]: it for pod in pods for it in pod["containers"]}


def configuration() -> str:
    """Of the front."""
    found = yaml.safe_load_all((ROOT / "addons/logs/tests/plain.expected.yml").read_text())
    (text,) = (it["data"]["front.cfg"] for it in found if it["kind"] == "ConfigMap")
    return str(text)


def arguments(container: str, own: Mapping[str, str]) -> list[str]:
    """The arguments of a container of the add-on, with values of the test."""
    pairs = [word.removeprefix("-").partition("=") for word in add_on()[container]["args"]]
    assert own.keys() <= {name for name, _, _ in pairs}
    return [f"-{name}={own.get(name, value)}" for name, _, value in pairs]


def identity() -> Identity:
    names = ServedNames(("c",), ("s",), scraper=(SCRAPER_NAME,), logs=(LOGS_NAME,), collector=(COLLECTOR_NAME,))
    return make_identity(names, datetime.now(UTC))


class Stack:
    """A store, its front, and a collector, with the certificates of a site."""

    def __init__(self, folder: Path, programs: Programs, stack: ExitStack) -> None:
        self.folder, self._programs, self._stack = folder, programs, stack
        self.port, self.front_port = free_ports(2)
        self.identity = identity()
        self.pods = folder / "pods"
        self.pods.mkdir()
        assert self.identity.logs is not None
        assert self.identity.collector is not None
        for side, serving in (("server", self.identity.logs), ("client", self.identity.collector)):
            (folder / side).mkdir()
            (folder / side / "tls.pem").write_text(serving.chain)
            (folder / side / "ca.crt").write_text(self.identity.bundle)

    def start_store(self, **options: str) -> subprocess.Popen[bytes]:
        own = {
            "httpListenAddr": f"127.0.0.1:{self.port}",
            "storageDataPath": str(self.folder / "data"),
            **{name.replace("__", "."): value for name, value in options.items()},
        }
        program = self._started([self._programs.store, *arguments("store", own)], "store.log")
        until(lambda: self.get("/health") == b"OK")
        return program

    def start_front(self, all_per_minute: int = 10**9, one_per_minute: int = 10**9) -> None:
        text: str = configuration()
        for before, after in (
            (f"bind :{LOG_COLLECTOR_PORT}", f"bind 127.0.0.1:{self.front_port}"),
            (f"127.0.0.1:{LOG_STORE_PORT}", f"127.0.0.1:{self.port}"),
            ("/tls/", f"{self.folder}/server/"),
            ("sc0_bytes_in_rate gt 8947848", f"sc0_bytes_in_rate gt {one_per_minute}"),
            ("sc1_bytes_in_rate gt 35791394", f"sc1_bytes_in_rate gt {all_per_minute}"),
        ):
            assert before in text
            text = text.replace(before, after)
        (self.folder / "front.cfg").write_text(text)
        self._started([*self._programs.front, "-db", "-f", self.folder / "front.cfg"], "front.log")
        until(lambda: self.sent(b"", "client")[0] != 0)

    def start_collector(self) -> subprocess.Popen[bytes]:
        """Reads the folder `pods`, under the path of the kubelet's."""
        own = {
            "httpListenAddr": "127.0.0.1:0",
            "fileCollector.glob": f"{self.pods}/*/*/*.log",
            "fileCollector.extraFields": '{"node":"g1"}',
            "tmpDataPath": str(self.folder / "buffer"),
            "remoteWrite.url": f"https://127.0.0.1:{self.front_port}/insert/native",
            "remoteWrite.tlsCAFile": f"{self.folder}/client/ca.crt",
            "remoteWrite.tlsCertFile": f"{self.folder}/client/tls.pem",
            "remoteWrite.tlsKeyFile": f"{self.folder}/client/tls.pem",
        }
        words = [*arguments("collector", own), f"-remoteWrite.tlsServerName={LOGS_NAME}"]
        return self._started([self._programs.collector, *words], "collector.log")

    def log(self, namespace: str, pod: str, container: str = "main", uid: str = "0-1-2") -> Path:
        """A file of the kubelet."""
        found = self.pods / f"{namespace}_{pod}_{uid}" / container / "0.log"
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    def ask(self, parameters: Parameters) -> list[str]:
        """The lines of an answer. The folder `pods` stands for the kubelet's."""
        own = {name: value.replace(PODS, str(self.pods)) for name, value in parameters.items()}
        url = f"http://127.0.0.1:{self.port}{PATH}"
        with urllib.request.urlopen(url, urlencode(own).encode(), timeout=60) as answer:
            return [line.decode().replace(str(self.pods), PODS) for line in answer]

    def sent(
        self, body: bytes, client: str | None, path: str = "/insert/native?version=v1", source: str = "127.0.0.1"
    ) -> tuple[int, bytes]:
        """Status and answer of the front, 0 where it refuses the connection. client: folder of a certificate."""
        context = ssl.create_default_context(cafile=str(self.folder / "client/ca.crt"))
        context.check_hostname = False
        if client is not None:
            context.load_cert_chain(self.folder / client / "tls.pem")
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.front_port, timeout=10, context=context, source_address=(source, 0)
        )
        try:
            with closing(connection):
                connection.request("POST", path, body)
                answer = connection.getresponse()
                return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""

    def _started(self, words: list[Any], log: str) -> subprocess.Popen[bytes]:
        return self._stack.enter_context(running([str(word) for word in words], self.folder / log))

    def get(self, path: str) -> bytes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                found: bytes = answer.read()
                return found
        except OSError:
            return b""


@pytest.fixture
def stack(log_programs: Programs, tmp_path: Path) -> Iterator[Stack]:
    """Ends its programs with the test."""
    with ExitStack() as ended:
        yield Stack(tmp_path, log_programs, ended)
