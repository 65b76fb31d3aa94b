from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from pai_install.components.build import fill
from pai_install.components.catalogue import (
    CATALOGUE_FILE,
    WRAPPERS,
    Catalogue,
    CBuild,
    DebBuild,
    Family,
    GoBuild,
    PythonBuild,
    load_catalogue,
    resolve,
)
from pai_install.components.model import SourceName
from pai_install.errors import ExitCode, PaiError
from tests.errors import raises

CATALOGUE = load_catalogue()
NAMES = list(CATALOGUE.components)
FAMILIES: list[Family] = ["modules", "upstream"]
SHARED = Path(__file__).parents[4] / "shared/data/upstream-artifacts.yml"
RELEASES = [(name, version) for name, component in CATALOGUE.components.items() for version in component.versions]
# What upstream files need to be installed, by the forms the roles expect.
KINDS = {
    "kubeadm": "binary",
    "kubelet": "binary",
    "kubectl": "binary",
    "etcdctl": "binary",
    "etcdutl": "binary",
    "containerd": "tar.gz",
    "runc": "binary",
    "cni-plugins": "tar.gz",
    "crictl": "tar.gz",
    "nvidia-container-toolkit": "tar.gz",
    "registry": "binary",
    "node-exporter": "binary",
}
# What kubeadm with its own repository asks for, and what this project adds.
IMAGES = {
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "coredns",
    "etcd",
    "pause",
    "flannel",
    "busybox",
    "metrics-server",
    "kueue",
    "jobset",
    "vc-scheduler",
    "vc-controller-manager",
    "vc-webhook-manager",
    "training-operator",
    "local-path-provisioner",
    "k8s-device-plugin",
    "registry",
    "haproxy",
    "python",
    "hivedscheduler",
    "rsync",
    "smbplugin",
    "azurefile-csi",
    "blob-csi",
    "csi-node-driver-registrar",
    "livenessprobe",
    "pai-console",
    "prometheus",
    "alertmanager",
    "kube-state-metrics",
    "victoria-logs",
    "vlagent",
}
# releases whose Go module has another number
MODULE_VERSIONS = {("prometheus", "3.16.0"): "0.316.0"}
# of these there is only the image of their makers
ONLY_IMAGES = {
    "hivedscheduler",
    "csi-driver-smb",
    "azurefile-csi-driver",
    "blob-csi-driver",
    "csi-node-driver-registrar",
    "livenessprobe",
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The catalogue as data, with one value replaced."""
    data: dict[str, Any] = YAML(typ="safe").load(CATALOGUE_FILE)
    *parents, last = path.split("/")
    place = data
    for word in parents:
        place = place[word]
    place[last] = value
    return data


def test_the_files_are_those_the_machines_install() -> None:
    kinds = {name: spec.kind for component in CATALOGUE.components.values() for name, spec in component.files.items()}
    assert kinds == KINDS


def test_the_images_are_those_the_cluster_asks_for() -> None:
    assert {name for component in CATALOGUE.components.values() for name in component.image_names} == IMAGES


@pytest.mark.parametrize("name", NAMES)
def test_every_component_says_what_it_is(name: str) -> None:
    component = CATALOGUE.components[name]
    assert component.summary
    assert component.home.startswith("https://")
    assert re.fullmatch(r"MIT|[A-Z][A-Za-z]*-[\d.]+(-only|-or-later)?", component.licence)
    assert component.files or component.image_names


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("minor", CATALOGUE.kubernetes.sets)
def test_every_set_is_complete_in_every_family(minor: str, family: Family) -> None:
    selection = resolve(CATALOGUE, minor, family)
    had = [name for name in NAMES if family == "upstream" or name not in ONLY_IMAGES]
    assert [pick.component for pick in selection.picks] == had
    for pick in selection.picks:
        assert CATALOGUE.components[pick.component].has(pick.version, family), pick


def test_what_no_source_of_modules_has_is_asked_for_in_vain() -> None:
    assert {name for name, component in CATALOGUE.components.items() if component.build is None} == ONLY_IMAGES
    with raises("components-not-in-source", "blob-csi-driver") as refused:
        resolve(CATALOGUE, "", "modules", {"kubernetes", "livenessprobe", "blob-csi-driver"})
    assert refused.value.exit_code is ExitCode.SITE_INVALID
    picks = resolve(CATALOGUE, "", "mirror", {"livenessprobe"}).picks
    assert [(pick.component, pick.version) for pick in picks] == [("livenessprobe", "2.19.0")]


@pytest.mark.parametrize(("name", "version"), RELEASES)
def test_every_version_can_be_had_somewhere(name: str, version: str) -> None:
    component = CATALOGUE.components[name]
    assert any(component.has(version, family) for family in FAMILIES)


@pytest.mark.parametrize(("name", "version"), RELEASES)
def test_sums_are_for_downloads_that_exist_and_differ(name: str, version: str) -> None:
    component = CATALOGUE.components[name]
    sums = component.versions[version].sha256
    downloads = {key for file, spec in component.files.items() for key in spec.downloads(file)}
    assert set(sums) <= downloads
    # two programs may come out of one archive
    urls = {key: url for file, spec in component.files.items() for key, url in spec.downloads(file).items()}
    values = {(urls[key], value) for key, by_architecture in sums.items() for value in by_architecture.values()}
    assert len(values) == len({value for _, value in values})
    assert all("amd64" in by_architecture for by_architecture in sums.values())


def test_no_sum_is_used_twice() -> None:
    seen: dict[str, tuple[str, str]] = {}
    for name, version in RELEASES:
        for by_architecture in CATALOGUE.components[name].versions[version].sha256.values():
            for value in by_architecture.values():
                assert seen.setdefault(value, (name, version)) == (name, version)


@pytest.mark.parametrize(("name", "version"), RELEASES)
def test_what_is_built_has_a_wrapper_that_requires_that_version(name: str, version: str) -> None:
    component = CATALOGUE.components[name]
    release = component.versions[version]
    if not release.modules or component.build is None or isinstance(component.build, DebBuild | PythonBuild):
        return
    wrapper = WRAPPERS / (release.wrapper or f"{name}-{version}")
    required = (wrapper / "go.mod").read_text()
    assert (wrapper / "go.sum").stat().st_size > 0
    if isinstance(component.build, CBuild):
        assert re.search(rf"{re.escape(component.build.module)} v[\d.]+\n", required)
        return
    assert re.search(rf" v{re.escape(MODULE_VERSIONS.get((name, version), version))}( // indirect)?\n", required)
    for package in component.build.packages:
        assert re.search(rf"^(\t|tool ){re.escape(package)}$", required, re.MULTILINE), package


def test_no_wrapper_is_left_over() -> None:
    used = {
        release.wrapper or f"{name}-{version}"
        for name, component in CATALOGUE.components.items()
        for version, release in component.versions.items()
        if release.modules
    }
    assert {path.name for path in WRAPPERS.iterdir()} <= used


@pytest.mark.parametrize("name", NAMES)
def test_programs_put_into_files_and_images_are_built(name: str) -> None:
    component = CATALOGUE.components[name]
    build = component.build
    if isinstance(build, GoBuild):
        names = [re.sub(r"/v\d+$", "", package).rpartition("/")[2] for package in build.packages]
        built = {build.rename.get(program, program) for program in names}
    else:
        built = set() if build is None or isinstance(build, PythonBuild) else {build.program}
    used = {program for spec in component.files.values() for program in spec.programs}
    used |= {program for image in component.images.values() for program in image.programs}
    assert used <= built


@pytest.mark.parametrize("name", NAMES)
def test_urls_are_https_and_name_version_and_architecture(name: str) -> None:
    for file, spec in CATALOGUE.components[name].files.items():
        assert bool(spec.url) != bool(spec.packages)
        for url in spec.downloads(file).values():
            assert url.startswith("https://")
            assert "{version}" in url
            assert "{arch}" in url


def test_kubeadm_is_stamped_with_its_version() -> None:
    build = CATALOGUE.components["kubernetes"].build
    assert isinstance(build, GoBuild)
    stamps = {name.rpartition(".")[2]: fill(value, "1.36.3") for name, value in build.stamps.items()}
    assert stamps == {"gitVersion": "v1.36.3", "gitMajor": "1", "gitMinor": "36", "gitTreeState": "clean"}


def test_tags_are_those_kubeadm_asks_for() -> None:
    selection = resolve(CATALOGUE, "1.36", "modules")
    tags = {
        name: fill(image.tag, selection.version(component))
        for component, description in CATALOGUE.components.items()
        for name, image in description.images.items()
        if component not in ONLY_IMAGES
    }
    assert tags["kube-apiserver"] == tags["kube-proxy"] == "v1.36.3"
    assert (tags["etcd"], tags["coredns"], tags["pause"]) == ("3.6.8-0", "v1.14.2", "3.10.2")
    assert tags["flannel"] == "v0.28.4"


@pytest.mark.skipif(not SHARED.exists(), reason="the shared collection of upstream sums is not here")
def test_sums_are_those_collected_from_upstream() -> None:
    collected = YAML(typ="safe").load(SHARED)["artifacts"]
    names = {"etcdctl": "etcd", "etcdutl": "etcd"}
    for name, version in RELEASES:
        for key, sums in CATALOGUE.components[name].versions[version].sha256.items():
            known = collected.get(names.get(key, key), {}).get("versions", {}).get(version)
            if known:
                assert dict(sums) == known, (key, version)


@pytest.mark.parametrize(
    ("wanted", "source", "exact"),
    [
        ("", "modules", "1.36.3"),
        ("1.36", "modules", "1.36.3"),
        ("1.36", "upstream", "1.36.4"),
        ("1.36", "mirror", "1.36.4"),
        ("v1.36.3", "upstream", "1.36.3"),
        ("1.35", "modules", "1.35.4"),
        ("1.35.8", "upstream", "1.35.8"),
    ],
)
def test_a_minor_is_its_newest_patch_of_the_source(wanted: str, source: SourceName, exact: str) -> None:
    selection = resolve(CATALOGUE, wanted, source)
    assert selection.kubernetes_version == exact
    assert selection.version("kubernetes") == exact
    assert selection.source == source


def test_companions_follow_the_minor() -> None:
    older = resolve(CATALOGUE, "1.35", "modules")
    assert (older.version("etcd"), older.version("coredns"), older.version("pause")) == ("3.6.6", "1.13.1", "3.10.1")
    assert older.version("containerd") == resolve(CATALOGUE, "1.36", "modules").version("containerd")


@pytest.mark.parametrize(
    ("wanted", "source"), [("1.36.4", "modules"), ("1.20", "upstream"), ("1.36.99", "upstream"), ("newest", "modules")]
)
def test_an_unknown_version_is_refused_with_those_that_exist(wanted: str, source: SourceName) -> None:
    with pytest.raises(PaiError, match=re.escape(wanted)) as refused:
        resolve(CATALOGUE, wanted, source)
    assert refused.value.exit_code == ExitCode.SITE_INVALID
    assert "1.36.3" in refused.value.remedy


def test_a_selection_without_a_component_says_so() -> None:
    with pytest.raises(KeyError):
        resolve(CATALOGUE).version("calico")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", 2),
        ("components/runc/licence", None),
        ("components/runc/colour", "red"),
        ("components/runc/versions/1.4.3/sha256/runc/amd64", "ABC"),
        ("components/runc/versions/1.4.3/sha256/runc/sparc", "0" * 64),
        ("components/runc/build/kind", "make"),
        ("components/runc/files/runc/kind", "zip"),
        ("components/runc/default", {"bundle": "1.4.3"}),
        ("components/runc/default/modules", "../1.4.3"),
    ],
)
def test_a_catalogue_with_a_mistake_is_refused(path: str, value: object) -> None:
    with pytest.raises(ValidationError):
        Catalogue.model_validate(changed(path, value))


def test_the_catalogue_is_read_once() -> None:
    assert load_catalogue() is load_catalogue()
