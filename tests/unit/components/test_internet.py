"""The whole catalogue through the stand-in internet, for both architectures, from upstream and from a mirror."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_install.components.access import UPSTREAM, Mirror
from pai_install.components.catalogue import Catalogue, load_catalogue, resolve
from pai_install.components.fetch import fetch
from pai_install.components.model import Architecture, ComponentSet, PinnedComponent, Selection
from pai_install.components.upstream import Releases
from pai_install.errors import PaiError
from pai_install.preflight.source import first_bytes
from tests.errors import raises
from tests.internet.content import Content, make
from tests.internet.network import Internet, connected
from tests.internet.servers import MIRROR_HOST, TOKEN_LASTS, Servers

REAL = load_catalogue()
DOCUMENTED = {*REAL.servers, *(host for hosts in REAL.servers.values() for host in hosts)}
# pip asks it, with the settings of the controller host
BY_PIP = {"pypi.org"}
ARCHITECTURES: tuple[Architecture, ...] = ("amd64", "arm64")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Catalogue, Content]:
    return make(REAL, tmp_path_factory.mktemp("content"))


@pytest.fixture
def internet(made: tuple[Catalogue, Content], tmp_path: Path) -> Iterator[Internet]:
    with connected(Servers(made[1]), DOCUMENTED, tmp_path) as found:
        yield found


def mirror(internet: Internet, **changed: str) -> Mirror:
    return replace(Mirror(f"https://{MIRROR_HOST}/pai", "robot", "pass word", internet.company), **changed)


def bring(catalogue: Catalogue, source: Releases, architecture: Architecture, minor: str, cache: Path) -> ComponentSet:
    selection = resolve(catalogue, minor, "upstream", None, (), architecture=architecture)
    return fetch(selection, source, cache)


def is_whole(found: ComponentSet, catalogue: Catalogue, architecture: Architecture) -> bool:
    components = [it for it in catalogue.components.values() if architecture not in it.lacks]
    for file in found.files:
        if file.kind == "tar.gz":
            with tarfile.open(file.path) as archive:
                assert archive.getmembers()
    return {file.name for file in found.files} == {name for it in components for name in it.files} and {
        image.repository for image in found.images
    } == {name for it in components for name in it.images}


@pytest.mark.parametrize("minor", REAL.kubernetes.sets)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_everything_comes_from_upstream(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path, architecture: Architecture, minor: str
) -> None:
    catalogue = made[0]
    found = bring(catalogue, Releases(catalogue, UPSTREAM, architecture), architecture, minor, tmp_path / "cache")
    assert is_whole(found, catalogue, architecture)
    assert internet.refused == set(), "hosts that the documentation does not name"
    assert REAL.servers.keys() - BY_PIP <= internet.asked, "hosts that nothing needs"
    assert internet.servers.renewed["auth.docker.io"] > 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_everything_comes_from_a_mirror_with_a_login_and_an_authority_of_its_own(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path, architecture: Architecture
) -> None:
    internet.allowed = {MIRROR_HOST}
    source = Releases(made[0], mirror(internet), architecture)
    assert is_whole(bring(made[0], source, architecture, "1.36", tmp_path / "cache"), made[0], architecture)
    assert (internet.asked, internet.refused) == ({MIRROR_HOST}, set())


def test_what_upstream_lacks_for_arm64_is_refused_with_its_reason() -> None:
    with raises("components-not-for-architecture", "arm64", "0.3.4", "amd64"):
        resolve(REAL, "1.36", "upstream", {"hivedscheduler", "kubernetes"}, (), architecture="arm64")
    resolve(REAL, "1.36", "upstream", {"hivedscheduler"}, ("hivedscheduler",), architecture="arm64")
    resolve(REAL, "1.36", "upstream", {"hivedscheduler"}, (), architecture="amd64")


ONE = PinnedComponent("volcano", "1.14.1")


def pull(catalogue: Catalogue, cache: Path, pick: PinnedComponent = ONE, source: Mirror = UPSTREAM) -> ComponentSet:
    return fetch(Selection("1.36.4", "upstream", (pick,)), Releases(catalogue, source, "amd64"), cache)


def test_a_token_that_ends_amid_an_image_is_renewed(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path
) -> None:
    """Three images of four requests each (index, manifest, two blobs) with a token that lasts for three."""
    assert len(pull(made[0], tmp_path / "cache").images) == 3
    assert TOKEN_LASTS == 3
    assert internet.servers.renewed["auth.docker.io"] == 6


def test_a_registry_that_asks_to_wait_is_waited_for(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path
) -> None:
    internet.servers.busy["registry-1.docker.io"] = 2
    assert len(pull(made[0], tmp_path / "cache").images) == 3


@pytest.mark.parametrize(("retry_after", "when"), [("21600", ", and allows the next request in 21600 s"), ("", "")])
def test_docker_hubs_limit_is_said(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path, retry_after: str, when: str
) -> None:
    internet.servers.busy["registry-1.docker.io"] = 1000
    internet.servers.retry_after = retry_after
    with raises("server-rate-limit") as caught:
        pull(made[0], tmp_path / "cache")
    words = "Docker Hub limits anonymous pulls per address, and hosts behind one NAT share an address"
    assert caught.value.message.endswith(words + when)
    assert "component_source" in str(caught.value.remedy)


def test_another_manifest_below_the_tag_is_never_taken(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path
) -> None:
    """A registry whose tag has moved still gives the pinned image; one that no longer has it is refused."""
    catalogue, content = made
    pick, repository = PinnedComponent("pause", "3.10.2"), "registry.k8s.io/pause"
    digest = catalogue.components["pause"].versions["3.10.2"].digest("pause")
    true, moved = content.manifests[repository, digest], b'{"manifests": []}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(content.manifests, (repository, "3.10.2"), moved)
        assert len(pull(catalogue, tmp_path / "kept", pick).images) == 1
        patch.setitem(content.manifests, (repository, digest), moved)
        with pytest.raises(PaiError, match=f"pause:3.10.2: its digest is sha256:.*, expected {digest}"):
            pull(catalogue, tmp_path / "exchanged", pick)
        patch.delitem(content.manifests, (repository, digest))
        with raises("download-refused", "404"):
            pull(catalogue, tmp_path / "gone", pick)
    assert content.manifests[repository, digest] == true
    assert internet.refused == set()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"password": "wrong"}, "rejects the login"),
        ({"username": ""}, "rejects the login"),
        ({"authorities": ""}, "certificate is not trusted"),
    ],
)
def test_a_mirror_that_is_not_told_who_asks_or_whom_to_trust(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path, changed: dict[str, str], words: str
) -> None:
    internet.allowed = {MIRROR_HOST}
    with pytest.raises(PaiError, match=words) as caught:
        pull(made[0], tmp_path / "cache", PinnedComponent("runc", "1.4.3"), mirror(internet, **changed))
    assert "pass word" not in str(caught.value)


@pytest.mark.parametrize("changed", [{"password": "wrong"}, {"username": ""}])
def test_a_mirrors_registry_that_refuses_the_login(
    internet: Internet, made: tuple[Catalogue, Content], tmp_path: Path, changed: dict[str, str]
) -> None:
    internet.allowed = {MIRROR_HOST}
    with pytest.raises(PaiError, match=r"as robot: the registry rejects|requires a login") as caught:
        pull(made[0], tmp_path / "cache", ONE, mirror(internet, **changed))
    assert "component_mirror_username" in str(caught.value.remedy)


def test_preflight_asks_for_a_real_byte_of_every_server(internet: Internet, made: tuple[Catalogue, Content]) -> None:
    picks = resolve(made[0], "1.36", "upstream").picks
    answers = first_bytes(Releases(made[0], UPSTREAM, "amd64"), picks)
    assert set(answers.values()) == {""}
    assert REAL.servers.keys() - BY_PIP <= internet.asked


@pytest.mark.parametrize(
    ("blocked", "named"),
    [
        ("cdn.dl.k8s.io", "https://dl.k8s.io/release/"),
        ("release-assets.githubusercontent.com", "https://github.com/"),
        ("production.cloudflare.docker.com", "https://registry-1.docker.io/"),
        ("prod-registry-k8s-io-*.s3.dualstack.*.amazonaws.com", "https://registry.k8s.io/"),
        ("layers.nvcr.io", "https://nvcr.io/"),
    ],
)
def test_preflight_finds_a_storage_that_a_firewall_keeps_away(
    internet: Internet, made: tuple[Catalogue, Content], blocked: str, named: str
) -> None:
    internet.allowed = DOCUMENTED - {blocked}
    picks = resolve(made[0], "1.36", "upstream").picks
    answers = first_bytes(Releases(made[0], UPSTREAM, "amd64"), picks)
    (bad,) = [(url, why) for url, why in answers.items() if why]
    assert bad[0].startswith(named)
    assert "403" in bad[1]
