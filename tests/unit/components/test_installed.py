"""Versions that stay: whatever the catalogue prefers, and said in words where they are no longer available."""

from __future__ import annotations

from pathlib import Path

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.model import ComponentSet, FileArtifact, ImageArtifact
from pai_install.errors import ExitCode
from tests.errors import raises


def test_an_older_minor_version_stays_with_what_belongs_to_it() -> None:
    chosen = resolve(load_catalogue(), "1.36", "modules", installed={"kubernetes": "1.35.4", "etcd": "3.6.6"})
    assert chosen.kubernetes_version == "1.35.4"
    assert chosen.version("etcd") == "3.6.6"
    assert chosen.version("coredns") == "1.13.1", "what no machine says is what its kubeadm asks for"


def test_what_is_installed_has_the_last_word() -> None:
    chosen = resolve(load_catalogue(), "1.36", "modules", installed={"kubernetes": "1.36.3", "etcd": "3.6.6"})
    assert chosen.version("etcd") == "3.6.6"


def test_nothing_installed_changes_nothing() -> None:
    catalogue = load_catalogue()
    assert resolve(catalogue, installed={}) == resolve(catalogue) == resolve(catalogue, installed=None)


def test_a_version_that_the_catalogue_lacks_is_an_error_that_names_the_way_out() -> None:
    with raises("installed-components-not-in-source", "2.0.1") as caught:
        resolve(load_catalogue(), installed={"kubernetes": "1.36.3", "containerd": "2.0.1"})
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert "pai-install upgrade" in caught.value.remedy


def test_a_version_of_something_that_the_site_does_not_need_is_not_asked_for() -> None:
    chosen = resolve(load_catalogue(), needed=["runc"], installed={"containerd": "2.0.1"})
    assert [pick.component for pick in chosen.picks] == ["runc"]


def artifact(name: str, version: str) -> FileArtifact:
    return FileArtifact(name, version, "binary", Path("/x"), version.rjust(64, "0"), 1)


def test_a_store_serves_several_versions_and_its_own_counts() -> None:
    new = ComponentSet((artifact("kubelet", "2"),), (ImageArtifact("etcd", "2", "sha256:2", Path("/x")),), "1.36.3")
    old = ComponentSet(
        (artifact("kubelet", "1"), artifact("runc", "1")),
        (ImageArtifact("etcd", "1", "sha256:1", Path("/x")), ImageArtifact("etcd", "2", "sha256:x", Path("/y"))),
        "1.35.4",
    )
    both = new.also(old)
    assert [(file.name, file.version) for file in both.files] == [("kubelet", "2"), ("kubelet", "1"), ("runc", "1")]
    assert both.file("kubelet").version == "2"
    assert [(image.tag, image.manifest_digest) for image in both.images] == [("2", "sha256:2"), ("1", "sha256:1")]
    assert both.kubernetes_version == "1.36.3"
    assert new.also() == new
