"""Pins of system images, by the real containerd: what a member's pod can pull removes none of them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import cached
from pai_install.components.model import Selection
from pai_install.components.modules import Modules
from tests.ansible_path import module_util
from tests.integration.components.conftest import CONFIG
from tests.ports import free_port
from tests.unit.modules.conftest import Run, library, run_module

__all__ = ["library", "run_module"]
ROOM, ALIAS = "registry.pai.internal", "example.com/alias:1"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containerd needs root")
CONTAINERD = """\
version = 4
root = "{folder}/root"
state = "{folder}/state"
[plugins.'io.containerd.server.v1.grpc']
  address = "{folder}/containerd.sock"
[plugins.'io.containerd.server.v1.ttrpc']
  address = "{folder}/containerd.sock.ttrpc"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "{folder}/certs.d"
"""
HOSTS = '[host."http://127.0.0.1:{port}"]\n  capabilities = ["pull", "push", "resolve"]\n'


@dataclass(frozen=True)
class Machine:
    """containerd with a registry beside it. image: of the pod sandbox. port: of the registry."""

    folder: Path
    programs: dict[str, Path]
    image: dict[str, str]
    port: int

    def ready(self) -> None:
        """Waits for both programs."""
        end = time.monotonic() + 120
        while not (self._listens() and self._answers()):
            assert time.monotonic() < end, (self.folder / "containerd.log").read_text()[-2000:]
            time.sleep(0.1)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _answers(self) -> bool:
        words = [str(self.programs["ctr"]), "-a", f"{self.folder}/containerd.sock", "version"]
        return subprocess.run(words, capture_output=True, check=False, timeout=60).returncode == 0

    def ctr(self, *words: str) -> str:
        return self._ran(self.programs["ctr"], "-a", f"{self.folder}/containerd.sock", "-n", "k8s.io", *words)

    def crictl(self, *words: str) -> str:
        socket = f"unix://{self.folder}/containerd.sock"
        return self._ran(self.programs["crictl"], "-r", socket, "-i", socket, *words)

    def _ran(self, *words: object) -> str:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_pinned(self) -> bool:
        (found,) = json.loads(self.crictl("images", "--output", "json"))["images"]
        return bool(found["pinned"])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder, layout = tmp_path_factory.mktemp("containerd"), Path()
    programs: dict[str, Path] = {}
    catalogue = load_catalogue()
    whole, source = resolve(catalogue), Modules(catalogue)
    for pick in whole.picks:
        if pick.component not in ("containerd", "cri-tools", "registry", "pause"):
            continue
        entry = cached(Selection(whole.kubernetes_version, "modules", (pick,)), source)[pick]
        if entry is None:
            pytest.skip(f"{pick.component} is not in the component cache: pai-install components fetch")
        if pick.component == "pause":
            layout = entry.folder / "images" / "pause"
        else:
            key = source.programs_key(pick)
            programs |= {path.name: path for path in (entry.folder.parent / key).iterdir()}
    with ExitStack() as stack:
        port = free_port()
        (folder / "registry.yml").write_text(CONFIG.format(root=folder / "store", readonly="false", port=port))
        (folder / "containerd.toml").write_text(CONTAINERD.format(folder=folder))
        for name in (ROOM, ALIAS.partition("/")[0]):
            (folder / "certs.d" / name).mkdir(parents=True)
            (folder / "certs.d" / name / "hosts.toml").write_text(HOSTS.format(port=port))
        for words in (
            (programs["registry"], "serve", folder / "registry.yml"),
            (programs["containerd"], "--config", folder / "containerd.toml"),
        ):
            log = stack.enter_context((folder / f"{words[0].name}.log").open("w"))
            process = stack.enter_context(subprocess.Popen([str(word) for word in words], stdout=log, stderr=log))
            stack.callback(process.terminate)
        yield stocked(Machine(folder, programs, {}, port), layout)


def stocked(machine: Machine, layout: Path) -> Machine:
    """The machine with the image in its registry, under two names, and not in containerd."""
    machine.ready()
    with tarfile.open(machine.folder / "pause.tar", "w") as archive:
        archive.add(layout, ".")
    name = f"{ROOM}/pause:3.10.2"
    machine.ctr("images", "import", "--base-name", f"{ROOM}/pause", str(machine.folder / "pause.tar"))
    machine.ctr("images", "tag", "--force", name, ALIAS)
    for each in (name, ALIAS):
        machine.ctr("images", "push", "--hosts-dir", f"{machine.folder}/certs.d", each)
    names = machine.ctr("images", "ls", "--quiet").split()
    machine.ctr("images", "rm", "--sync", *names)
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    return replace(machine, image={"name": name, "digest": described["digest"]})


@pytest.fixture
def images(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Any:
    """playbooks/module_utils/pai_images.py with this containerd."""
    util = module_util("pai_images")
    words = (str(machine.programs["ctr"]), "--address", f"{machine.folder}/containerd.sock", "--namespace", "k8s.io")
    monkeypatch.setattr(util, "CTR", words)
    monkeypatch.setattr(util, "HOSTS_DIR", f"{machine.folder}/certs.d")
    return util


def test_no_pull_by_a_pod_removes_a_pin(machine: Machine, images: Any, run_module: Run) -> None:
    image = machine.image
    expected = run_module("pai_images", images=[image])["managed"]
    assert machine.is_pinned()
    by_digest = images.by_digest(image["name"], image["digest"])
    for name in (ALIAS, image["name"], by_digest):
        machine.crictl("pull", name)
        assert images.image_problems(expected) == [], name
        assert machine.is_pinned(), name
        assert not run_module("pai_images", images=[image])["changed"], name
    pin = next(iter(images.pins([image])))
    with pytest.raises(AssertionError, match="invalid reference format"):
        machine.crictl("pull", pin)


def test_image_of_an_earlier_version_loses_its_pin(machine: Machine, run_module: Run, images: Any) -> None:
    del images
    run_module("pai_images", images=[machine.image])
    run_module("pai_images", images=[])
    assert not machine.is_pinned()
