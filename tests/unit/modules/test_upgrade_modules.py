"""What the modules of an upgrade decide by: versions that are there, and commands of kubeadm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ansible_path import module_util

Library = Callable[[str], Any]


def test_versions_of_what_was_put_there(tmp_path: Path) -> None:
    found = module_util("pai_installed")
    ledger = tmp_path / "artifacts.json"
    ledger.write_text(json.dumps({
        "containerd /usr/local": {"version": "2.3.7", "files": {}},
        "kubeadm /usr/local/bin/kubeadm": {"version": "1.36.3"},
        "broken": 7,
    }))  # fmt: skip
    assert found.programs(str(ledger)) == {"containerd": "2.3.7", "kubeadm": "1.36.3"}
    record = tmp_path / "system_images.json"
    record.write_text(json.dumps({"managed": [
        {"kind": "image", "name": "registry.pai.internal/coredns:v1.14.2", "digest": "sha256:1"},
        {"kind": "image", "name": "registry.pai.internal:5080/a/flannel:v0.28.4"},
        {"kind": "file", "path": "/x"}, "strange",
    ]}))  # fmt: skip
    assert found.images(str(record)) == {"coredns": "v1.14.2", "flannel": "v0.28.4"}
    for damaged in ("", "[]", "{", "null"):
        ledger.write_text(damaged)
        assert found.programs(str(ledger)) == {}
    assert found.images(str(tmp_path / "none")) == {}


def manifests(folder: Path, **versions: str) -> str:
    for name, version in versions.items():
        pod = name.replace("_", "-")
        (folder / f"{pod}.yaml").write_text(
            f"spec:\n  containers:\n  - command: []\n    image: registry/{pod}:v{version}\n"
        )
    return str(folder)


def test_static_pods_of_another_version_are_outdated(tmp_path: Path) -> None:
    upgrade = module_util("pai_kubeadm_upgrade")
    folder = manifests(tmp_path, kube_apiserver="1.36.3", kube_scheduler="1.35.4")
    assert upgrade.outdated("1.36.3", folder) == ["kube-scheduler"]
    assert upgrade.outdated("1.35.4", folder) == ["kube-apiserver"]
    assert upgrade.outdated("1.36.3", str(tmp_path / "none")) == [], "a machine that is none has nothing to upgrade"


def test_kubeadm_uploads_the_tags_before_it_applies(tmp_path: Path) -> None:
    upgrade = module_util("pai_kubeadm_upgrade")
    patches = str(tmp_path)
    first = upgrade.commands("1.36.3", "/c.yaml", first=True, ignored=["A", "B"], patches=patches)
    assert first == [
        ("init", "phase", "upload-config", "kubeadm", "--config", "/c.yaml"),
        ("upgrade", "apply", "v1.36.3", "--yes", "--skip-phases=bootstrap-token", "--ignore-preflight-errors=A,B"),
    ]
    (tmp_path / "corednsdeployment.yaml").write_text("{}")
    assert upgrade.commands("1.36.3", "/c.yaml", first=False, ignored=[], patches=patches) == [
        ("upgrade", "node", f"--patches={patches}")
    ]


def test_what_kubeadm_leaves_is_taken_away(tmp_path: Path) -> None:
    for name in ("kubeadm-backup-etcd-2026", "kubeadm-upgraded-manifests1", "mine"):
        (tmp_path / name).mkdir()
    module_util("pai_kubeadm_upgrade").clean(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


class PowerError(Exception):
    """kubeadm failed, or the machine lost its power."""


@pytest.fixture
def control_plane(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A member on its way from 1.35.4; kubeadm writes down what it is asked, and upgrades the pods."""
    module = library("pai_kubeadm")
    monkeypatch.setattr(module, "STATE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "MARKER", str(tmp_path / "kubeadm.json"))
    for name in ("enforce_modes", "keep_copies", "clean"):
        monkeypatch.setattr(module, name, lambda *_: None)
    module.set_marker("init", done=True)
    state = SimpleNamespace(versions={"1.35.4"}, calls=[], breaks=False)
    monkeypatch.setattr(module, "outdated", lambda version: sorted(state.versions - {version}))
    params = {"state": "init", "version": "1.36.3", "ignore_preflight_errors": []}
    member = module.Member(SimpleNamespace(check_mode=False, params=params))
    member.require_quorum = lambda _changing: None

    def kubeadm(*words: str) -> None:
        state.calls.append(words[:2])
        if words[0] == "upgrade":
            state.versions = {"1.36.3"}
            if state.breaks:
                raise PowerError

    member.kubeadm = kubeadm
    return SimpleNamespace(module=module, member=member, state=state, params=params)


def test_other_version_is_an_upgrade_once(control_plane: Any) -> None:
    control_plane.member.upgrade("init")
    assert control_plane.state.calls == [("init", "phase"), ("upgrade", "apply")]
    assert control_plane.module.marker() == {"state": "init", "done": True}
    control_plane.member.upgrade("init")
    assert len(control_plane.state.calls) == 2
    assert control_plane.member.actions == ["kubeadm upgrade to 1.36.3"]


def test_upgrade_that_was_cut_off_after_the_pods_is_done_again(control_plane: Any) -> None:
    control_plane.state.breaks = True
    with pytest.raises(PowerError):
        control_plane.member.upgrade("init")
    assert control_plane.module.marker() == {"state": "init", "done": True, "upgrading": "1.36.3"}
    control_plane.state.breaks = False
    control_plane.member.upgrade("init")
    assert control_plane.state.calls.count(("upgrade", "apply")) == 2
    assert control_plane.module.marker() == {"state": "init", "done": True}


def test_further_control_planes_follow_the_first(control_plane: Any) -> None:
    control_plane.params["state"] = "join-control-plane"
    control_plane.member.upgrade("join-control-plane")
    assert control_plane.state.calls == [("upgrade", "node")]


def test_no_version_asks_for_no_upgrade(control_plane: Any) -> None:
    control_plane.params["version"] = ""
    control_plane.member.upgrade("init")
    assert control_plane.state.calls == []


def test_check_mode_only_says_it(control_plane: Any) -> None:
    control_plane.member.module.check_mode = True
    control_plane.member.upgrade("init")
    assert control_plane.member.actions == ["kubeadm upgrade to 1.36.3"]
    assert control_plane.state.calls == []


def test_two_runs_never_use_kubeadm_at_once(library: Library, tmp_path: Path) -> None:
    module, path = library("pai_kubeadm"), str(tmp_path / "lock")
    with module.alone(5, path), pytest.raises(BlockingIOError), module.alone(0, path):
        pass
    with module.alone(0, path):
        pass
