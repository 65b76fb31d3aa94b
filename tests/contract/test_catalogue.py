"""The catalogue pins what it can: sums for both architectures, digests of images, the hosts that files come from."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from pai_install.components.catalogue import UNKNOWN, load_catalogue

CATALOGUE = load_catalogue()
_RECORD = "registry.k8s.io's own record, as far as it is published in kubernetes/k8s.io, ends before this version"
_NONE = "no public record of the digest was found"
# Images that are fetched by their tags: (component, version) -> why. Whoever finds a digest writes it into the
# catalogue and takes the line out here.
BY_TAG = {
    ("kubernetes", "1.36.4"): _RECORD,
    ("kubernetes", "1.36.3"): f"{_RECORD}; of kube-proxy nobody else has written it down",
    ("kubernetes", "1.35.8"): _RECORD,
    ("kubernetes", "1.35.4"): _RECORD,
    ("etcd", "3.6.6"): _RECORD,
    ("kueue", "0.18.3"): _RECORD,
    ("volcano", "1.14.1"): _NONE,
    ("training-operator", "1.9.4"): _NONE,
    ("prometheus", "3.16.0"): _NONE,
    ("victoria-logs", "1.52.1"): _NONE,
    ("local-path-provisioner", "0.0.30"): _NONE,
    ("hivedscheduler", "0.3.4"): _NONE,
    ("rsync", "2.3"): _NONE,
    ("csi-driver-smb", "1.20.3"): _RECORD,
    ("azurefile-csi-driver", "1.35.7"): _NONE,
    ("blob-csi-driver", "1.27.9"): _NONE,
}
UPSTREAM = [
    (name, version)
    for name, component in CATALOGUE.components.items()
    for version in component.versions
    if component.images and component.has(version, "upstream")
]


@pytest.mark.parametrize(("name", "version"), UPSTREAM)
def test_every_image_says_its_digest_or_that_none_is_known(name: str, version: str) -> None:
    component = CATALOGUE.components[name]
    defaults = {component.default.get("upstream")}
    wanted = {it.with_.get(name) or it.kubernetes["upstream"] for it in CATALOGUE.kubernetes.sets.values()}
    release = component.versions[version]
    if name != "kubernetes" and version not in defaults | wanted:
        assert not release.digests, "no source asks upstream for this version"
        return
    assert release.digests.keys() == component.images.keys()
    assert (UNKNOWN in release.digests.values()) == ((name, version) in BY_TAG), (
        "list it with its reason, or take it out"
    )


def test_no_reason_is_left_over() -> None:
    assert BY_TAG.keys() <= set(UPSTREAM)


@pytest.mark.parametrize("name", CATALOGUE.components)
def test_files_have_sums_for_both_architectures_or_a_reason(name: str) -> None:
    component = CATALOGUE.components[name]
    for release in component.versions.values():
        for sums in release.sha256.values():
            assert {"amd64", "arm64"} - component.lacks.keys() == set(sums)


def test_every_host_of_a_url_is_among_the_servers_and_no_other_is() -> None:
    components = CATALOGUE.components.values()
    urls = [url for it in components for name, spec in it.files.items() for url in spec.downloads(name).values()]
    urls += [spec.url for it in components for spec in it.manifests.values()]
    hosts = {urlsplit(url).netloc for url in urls}
    hosts |= {image.from_.partition("/")[0] for it in components for image in it.images.values()}
    hosts |= {"pypi.org"} if any(it.wheels for it in components) else set()
    assert {"registry-1.docker.io" if host == "docker.io" else host for host in hosts} == set(CATALOGUE.servers)


def test_go_can_be_brought_to_both_architectures() -> None:
    assert set(CATALOGUE.go.toolchain) == {"amd64", "arm64"}
