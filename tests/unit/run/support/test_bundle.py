"""One file, for the owner only, bounded, whole or not there; secrets are masked, and what is missing is named."""

from __future__ import annotations

import base64
import json
import tarfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import Select
from pai_install.engine.base import Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.run.state import open_state
from pai_install.run.support.bundle import from_controller_host, known_secrets, write_bundle
from pai_install.run.support.gather import Collected, from_cluster, from_machines
from pai_install.run.support.masks import Masks
from pai_install.site.load import load_site
from tests.unit.cli.stub_environment import write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_nodes import node
from tests.unit.runs import done, event

SECRET = "planted-Secret-7f3a"


def packed(texts: dict[str, str]) -> str:
    return base64.b64encode(zlib.compress(json.dumps(texts).encode())).decode()


def content(path: Path) -> dict[str, str]:
    """Name below the bundle's folder -> text."""
    with tarfile.open(path) as archive:
        members = {entry.name: archive.extractfile(entry) for entry in archive}
        return {name.partition("/")[2]: file.read().decode() for name, file in members.items() if file}


class Engine:
    """Gives events, at a time of its own clock each."""

    def __init__(self, *events: Event) -> None:
        self.events, self.now, self.closed = events, 0.0, False

    def run(self, request: RunRequest) -> Generator[Event]:
        assert request.playbook == "support.yml"
        try:
            for number, one in enumerate(self.events):
                self.now = float(number)
                yield one
        finally:
            self.closed = True


@pytest.fixture
def site_dir(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def test_bundle_is_private_whole_and_masked(site_dir: Path, tmp_path: Path) -> None:
    (site_dir / "config.yaml").write_text(f"user: pai\npassword: {SECRET}\n")
    state = open_state(site_dir)
    state.registry.write_text(json.dumps({"password": "registry-Secret-1"}))
    found = Collected({"machines/one/journal.txt": f"said {SECRET} and registry-Secret-1\n"}, {"two": f"no {SECRET}"})
    from_controller_host(site_dir, state, found)
    path = tmp_path / "b.tar.gz"
    assert write_bundle(path, found, Masks(known_secrets(site_dir, state)), 1_000_000) == ()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.endswith(".part")] == []
    texts = content(path)
    assert {"README.txt", "site/layout.yaml", "site/config.yaml", "machines/one/journal.txt"} <= texts.keys()
    assert not any(word in text for text in texts.values() for word in (SECRET, "registry-Secret-1"))
    assert "two: no ********" in texts["README.txt"]


def test_what_is_too_large_is_left_out_by_name_and_small_files_stay(tmp_path: Path) -> None:
    found = Collected({"long.txt": "x" * 900, "short.txt": "y"})
    path = tmp_path / "b.tar.gz"
    assert write_bundle(path, found, Masks(()), 500) == ("long.txt",)
    assert content(path).keys() == {"README.txt", "short.txt"}
    assert "long.txt" in content(path)["README.txt"]


def test_machines_that_do_not_answer_are_named(site_dir: Path) -> None:
    site, found = load_site(site_dir).site, Collected()
    from_machines(
        Engine(
            event("ok", "one", packed=packed({"journal.txt": "fine", "../../evil": "x", ".hidden": "y"})),
            event("unreachable", "two", msg="No route\nto host"),
            *done(),
        ),
        site,
        60,
        found,
    )
    assert found.files == {
        "machines/one/journal.txt": "fine",
        "machines/one/-..-evil": "x",
        "machines/one/hidden": "y",
    }
    assert found.missing == {"two": "No route to host", "master": "no answer within 60 s"}


def test_time_is_bounded_and_what_came_stays(site_dir: Path, snapshot: SnapshotAssertion) -> None:
    engine = Engine(
        event("ok", "one", packed=packed({"a": "1"})), *(event("ok", "one") for _ in range(9)),
        event("ok", "two", packed=packed({"a": "2"})),
    )  # fmt: skip
    found = Collected()
    from_machines(engine, load_site(site_dir).site, 5, found, lambda: engine.now)
    assert engine.closed
    assert list(found.files) == ["machines/one/a"]
    assert found.missing["two"] == snapshot


@pytest.mark.parametrize("sent", ["not base64!", base64.b64encode(b"no zlib").decode(), packed([])])  # type: ignore[arg-type]
def test_machine_that_answers_nonsense_stops_nothing(site_dir: Path, sent: str) -> None:
    found = Collected()
    from_machines(Engine(event("ok", "one", packed=sent)), load_site(site_dir).site, 60, found)
    assert all(name.startswith("machines/one/") for name in found.files)


def test_engine_that_cannot_run_is_named(site_dir: Path) -> None:
    class Broken:
        def run(self, request: RunRequest) -> Generator[Event]:
            if request.playbook:
                raise PaiError("ansible is gone")
            yield Event(EventKind.DONE)

    found = Collected()
    from_machines(Broken(), load_site(site_dir).site, 60, found)
    assert found.missing["machines"] == "ansible is gone"


def test_environment_of_pods_stays_in_the_cluster() -> None:
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "job", "namespace": "ml", "annotations": {"a": SECRET}},
        "spec": {"nodeName": "one", "containers": [{"env": [{"name": "X", "value": SECRET}]}]},
        "status": {"phase": "Running"},
    }
    cluster, found = FakeCluster.of(pod, node("one")), Collected()
    from_cluster(cluster, ("kube-system",), found)
    (shown,) = json.loads(found.files["cluster/pods.json"])
    assert (shown["nodeName"], shown["status"]) == ("one", {"phase": "Running"})
    assert not any(SECRET in text for text in found.files.values())


def test_cluster_that_does_not_answer_is_named() -> None:
    class Dead(FakeCluster):
        def list(self, *selects: Select) -> tuple[tuple[Any, ...], ...]:
            del selects
            raise PaiError("no control plane answers")

        def logs_of(self, select: Select, *, tail: int = -1) -> dict[str, str]:
            del select, tail
            raise PaiError("no control plane answers")

    found = Collected()
    from_cluster(Dead(), ("kube-system",), found)
    assert found.files == {}
    assert found.missing["cluster nodes"] == found.missing["logs of kube-system"] == "no control plane answers"
