"""support-bundle from argv to exit code: machines that are away, and a site that is broken, stop nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_nodes import node
from tests.unit.run.support.test_bundle import content, packed
from tests.unit.runs import done, event


@pytest.fixture
def site_dir(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def test_the_verb_writes_it_while_machines_are_away(site_dir: Path, tmp_path: Path, in_world: Any, capsys: Any) -> None:
    events = done(event("ok", "one", packed=packed({"kernel.txt": "Linux"})), event("unreachable", "two", msg="gone"))
    in_world(World(script={"support.yml": events}, api=FakeCluster.of(node("one"))))
    path = tmp_path / "out.tar.gz"
    assert run(["support-bundle", "--site", str(site_dir), "--out", str(path)]) == ExitCode.OK
    texts = content(path)
    assert texts["machines/one/kernel.txt"] == "Linux"
    assert "status.json" in texts
    out, err = capsys.readouterr()
    assert "without two: gone" in err
    assert str(path) in out


def test_broken_site_gives_a_bundle_all_the_same(site_dir: Path, tmp_path: Path, in_world: Any, capsys: Any) -> None:
    in_world(World())
    (site_dir / "layout.yaml").write_text("machine-list: [")
    path = tmp_path / "out.tar.gz"
    assert run(["support-bundle", "--site", str(site_dir), "--out", str(path)]) == ExitCode.OK
    assert "site" in content(path)["README.txt"]
    assert "without site" in capsys.readouterr().err
