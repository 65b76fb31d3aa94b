from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pai_install.components import modules as module
from pai_install.components.catalogue import Catalogue, GoBuild
from pai_install.components.fetch import fetch
from pai_install.components.model import ComponentSet, ImageArtifact, PinnedComponent, Selection
from pai_install.components.modules import Modules
from pai_install.components.source import BuildContext

COMPONENTS: dict[str, Any] = {
    "kubernetes": {
        "files": {
            "kubeadm": {"kind": "binary", "url": "https://x/{version}", "programs": ["kubeadm"]},
            "tools": {"kind": "tar.gz", "url": "https://x/{version}", "programs": ["kubeadm", "kube-proxy"]},
            "boxed": {"kind": "tar.gz", "url": "https://x/{version}", "programs": ["kubeadm"], "folder": "bin"},
        },
        "images": {
            "kube-proxy": {
                "tag": "v{version}",
                "from": "registry.k8s.io/kube-proxy",
                "programs": {"kube-proxy": "/usr/local/bin/kube-proxy"},
                "userland": True,
            },
            "shell": {
                "tag": "{version}-0",
                "from": "docker.io/library/shell",
                "programs": {"kubeadm": "/bin/shell"},
                "applets": ["sh", "ls"],
                "user": "65535:65535",
            },
        },
        "build": {"kind": "go", "packages": ["x/kubeadm", "x/kube-proxy"], "debian": ["gcc"], "disk_mb": 7},
        "versions": {"1.2.3": {"modules": True}},
    },
    "flannel": {
        "images": {
            "flannel": {
                "tag": "v{version}",
                "from": "docker.io/flannel/flannel",
                "programs": {"flanneld": "/opt/bin/flanneld"},
                "userland": True,
            }
        },
        "build": {"kind": "go", "packages": ["x/flanneld"], "disk_mb": 1},
        "versions": {"1.2.3": {"modules": True}},
    },
}
PICK = PinnedComponent("kubernetes", "1.2.3")


def catalogue(change: Callable[[dict[str, Any]], None] = lambda _: None) -> Catalogue:
    components = json.loads(json.dumps(COMPONENTS))
    change(components["kubernetes"])
    for component in components.values():
        component |= {"summary": "x", "licence": "MIT", "home": "https://x"}
    return Catalogue.model_validate(
        {
            "schema_version": 1,
            "go": {"version": "1.26.8", "toolchain": {}},
            "userland": {"packages": ["nftables"]},
            "kubernetes": {"default": "1.2", "sets": {}},
            "components": components,
        }
    )


@pytest.fixture
def wrappers(tmp_path: Path) -> Path:
    for name in COMPONENTS:
        folder = tmp_path / f"wrappers/{name}-1.2.3"
        folder.mkdir(parents=True)
        (folder / "go.mod").write_text(f"module {name}\n")
        (folder / "go.sum").write_text("sums\n")
    return tmp_path / "wrappers"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the Go client and apt; the list names what was made, in order."""
    made: list[str] = []

    def build_go(build: GoBuild, version: str, wrapper: Path, _go: object, context: BuildContext, out: Path) -> None:
        made.append(wrapper.name)
        assert not (context.scratch / "mod/large").exists()
        made.append("prefetched modules") if (context.scratch / "mod/prefetched").exists() else None
        made.append("compiled packages") if (context.scratch / "cache").exists() else None
        for name in ("cache", "mod"):
            (context.scratch / name).mkdir(exist_ok=True)
            (context.scratch / name / "large").write_bytes(b"x" * 1000)
        for package in build.packages:
            (out / package.rpartition("/")[2]).write_bytes(f"{package} {version}".encode())

    @contextmanager
    def downloads(_build: object, wrapper: Path, _go: object, context: BuildContext) -> Iterator[Path]:
        (context.scratch / "mod").mkdir(parents=True)
        yield context.scratch / "mod"
        (context.scratch / "mod/prefetched").write_text(wrapper.name)

    def unpack(_packages: object, root: Path) -> None:
        made.append("userland")
        (root / "usr/sbin").mkdir(parents=True)
        (root / "usr/sbin/nft").write_bytes(b"nft")

    monkeypatch.setattr(module, "build_go", build_go)
    monkeypatch.setattr(module, "downloads", downloads)
    monkeypatch.setattr("pai_install.components.userland.unpack", unpack)
    monkeypatch.setattr("pai_install.components.userland.fetch_packages", lambda *_: [])
    monkeypatch.setattr("pai_install.components.fetch.missing", lambda _: ())
    return made


def bring(source: Modules, cache: Path, *names: str) -> ComponentSet:
    picks = tuple(PinnedComponent(name, "1.2.3") for name in names or ("kubernetes",))
    return fetch(Selection("1.2.3", "modules", picks), source, cache)


def layers_of(image: ImageArtifact) -> list[Path]:
    blobs = image.layout / "blobs/sha256"
    manifest = json.loads((blobs / image.manifest_digest.removeprefix("sha256:")).read_text())
    return [blobs / layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]


def config_of(image: ImageArtifact) -> dict[str, Any]:
    blobs = image.layout / "blobs/sha256"
    manifest = json.loads((blobs / image.manifest_digest.removeprefix("sha256:")).read_text())
    config: dict[str, Any] = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())
    return config["config"]  # type: ignore[no-any-return]


def names_in(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_a_program_is_a_file(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    kubeadm = bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache").file("kubeadm")
    assert kubeadm.path.read_bytes() == b"x/kubeadm 1.2.3"
    assert (kubeadm.kind, kubeadm.version) == ("binary", "1.2.3")


def test_archives_have_the_forms_of_upstream(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    result = bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache")
    assert names_in(result.file("tools").path) == ["./kube-proxy", "./kubeadm"]
    assert names_in(result.file("boxed").path) == ["bin/kubeadm"]


def test_an_image_has_tag_user_and_entrypoint(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    result = bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache")
    shell = result.image("shell")
    assert shell.tag == "1.2.3-0"
    assert config_of(shell)["Entrypoint"] == ["/bin/shell"]
    assert config_of(shell)["User"] == "65535:65535"
    (layer,) = layers_of(shell)
    with tarfile.open(layer) as archive:
        assert archive.getmember("bin/sh").linkname == "kubeadm"
        assert "etc/passwd" in archive.getnames()


def test_images_share_the_userland_layer(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    result = bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache", "kubernetes", "flannel")
    proxy, flannel = layers_of(result.image("kube-proxy")), layers_of(result.image("flannel"))
    assert proxy[0].samefile(flannel[0])
    assert "usr/sbin/nft" in names_in(proxy[0])
    assert "usr/local/bin/kube-proxy" in names_in(proxy[1])
    assert "opt/bin/flanneld" in names_in(flannel[1])
    assert builds.count("userland") == 1


def test_nothing_is_built_twice(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    first = bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache")
    made = list(builds)
    assert bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache") == first
    assert builds == made == ["kubernetes-1.2.3", "userland"]


def test_another_image_does_not_rebuild_programs(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache")
    changed = catalogue(lambda kubernetes: kubernetes["images"]["shell"].update(user="0"))
    shell = bring(Modules(changed, "amd64", wrappers), tmp_path / "cache").image("shell")
    assert config_of(shell)["User"] == "0"
    assert builds == ["kubernetes-1.2.3", "userland"]


def test_image_has_the_variables_of_upstreams(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache")
    changed = catalogue(lambda kubernetes: kubernetes["images"]["shell"].update(env={"NVIDIA_VISIBLE_DEVICES": "all"}))
    shell = bring(Modules(changed, "amd64", wrappers), tmp_path / "cache").image("shell")
    assert "NVIDIA_VISIBLE_DEVICES=all" in config_of(shell)["Env"]
    assert builds == ["kubernetes-1.2.3", "userland"], "programs are not built again for it"


def packaged(kubernetes: dict[str, Any]) -> None:
    kubernetes["images"]["shell"].update(packages=["nftables"])


def test_image_stands_on_packages_of_its_own(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    source = Modules(catalogue(packaged), "amd64", wrappers)
    (layer,) = layers_of(bring(source, tmp_path / "cache").image("shell"))
    with tarfile.open(layer) as archive:
        assert archive.getmember("bin").linkname == "usr/bin"
        assert archive.getmember("usr/bin/sh").linkname == "kubeadm"
        assert archive.getmember("usr/bin/shell").isfile()
        assert {"etc/passwd", "tmp"} <= set(archive.getnames())
    assert {"apt", "dpkg"} <= set(source.debian_packages(PICK))


def test_image_without_packages_keeps_its_key(wrappers: Path) -> None:
    recipe = module._image_recipe(catalogue().components["kubernetes"].images["shell"])
    assert recipe.keys() == {"tag", "programs", "userland", "applets", "user"}
    keys = {Modules(catalogue(*change), "amd64", wrappers).key(PICK) for change in ((), (packaged,))}
    assert len(keys) == 2


def test_caches_of_the_build_are_gone_afterwards(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache", "kubernetes", "flannel")
    assert not list((tmp_path / "cache").glob("build*"))
    assert not list((tmp_path / "cache").rglob("large"))


@pytest.mark.parametrize("shared", ["compiled packages", "prefetched modules"])
@pytest.mark.parametrize(("room_mb", "times"), [(0, 1), (1 << 40, 0)])
def test_the_next_build_begins_with_more_while_there_is_room(
    tmp_path: Path,
    wrappers: Path,
    builds: list[str],
    monkeypatch: pytest.MonkeyPatch,
    room_mb: int,
    times: int,
    shared: str,
) -> None:
    monkeypatch.setattr(module, "ROOMY_MB", room_mb)
    bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache", "kubernetes", "flannel")
    assert builds.count(shared) == times


def test_programs_of_the_cache_need_no_modules(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    source = Modules(catalogue(), "amd64", wrappers)
    bring(source, tmp_path / "cache", "flannel")
    (tmp_path / "cache/entries" / source.key(PinnedComponent("flannel", "1.2.3")) / "entry.json").unlink()
    bring(source, tmp_path / "cache", "kubernetes", "flannel")
    assert "prefetched modules" not in builds


def test_a_failed_build_leaves_nothing_half_made(
    tmp_path: Path, wrappers: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        (arguments[-1] / "kubeadm").write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build_go", fail)
    with pytest.raises(KeyboardInterrupt):
        bring(Modules(catalogue(), "amd64", wrappers), tmp_path / "cache")
    assert list((tmp_path / "cache/entries").iterdir()) == []


def test_a_damaged_program_is_built_again(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    source = Modules(catalogue(), "amd64", wrappers)
    damaged = bring(source, tmp_path / "cache").file("kubeadm").path
    damaged.write_bytes(b"evil")  # the same file as the one in the cache of programs: both are found out
    assert bring(source, tmp_path / "cache").file("kubeadm").path.read_bytes() == b"x/kubeadm 1.2.3"
    assert builds.count("kubernetes-1.2.3") == 2


def keys(source: Modules) -> tuple[str, str]:
    return source.programs_key(PICK), source.key(PICK)


def test_keys_are_stable_and_tell_what_they_are_for(wrappers: Path) -> None:
    programs, whole = keys(Modules(catalogue(), "amd64", wrappers))
    assert (programs, whole) == keys(Modules(catalogue(), "amd64", wrappers))
    assert programs.startswith("programs-kubernetes-1.2.3-")
    assert whole.startswith("kubernetes-1.2.3-")


def _flag(kubernetes: dict[str, Any]) -> None:
    kubernetes["build"]["stamps"] = {"x.v": "1"}


def _tags(kubernetes: dict[str, Any]) -> None:
    kubernetes["build"]["tags"] = ["netgo"]


@pytest.mark.parametrize("change", [_flag, _tags])
def test_another_recipe_is_another_program(wrappers: Path, change: Callable[[dict[str, Any]], None]) -> None:
    before = keys(Modules(catalogue(), "amd64", wrappers))
    after = keys(Modules(catalogue(change), "amd64", wrappers))
    assert before[0] != after[0]
    assert before[1] != after[1]


def _disk(kubernetes: dict[str, Any]) -> None:
    kubernetes["build"] |= {"disk_mb": 99, "debian": []}


def _upstream(kubernetes: dict[str, Any]) -> None:
    kubernetes["files"]["kubeadm"]["url"] = "https://elsewhere/{version}"
    kubernetes["images"]["shell"]["from"] = "ghcr.io/shell"


@pytest.mark.parametrize("change", [_disk, _upstream])
def test_what_does_not_matter_keeps_the_result(wrappers: Path, change: Callable[[dict[str, Any]], None]) -> None:
    assert keys(Modules(catalogue(), "amd64", wrappers)) == keys(Modules(catalogue(change), "amd64", wrappers))


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_another_module_list_is_another_program(wrappers: Path, name: str) -> None:
    source = Modules(catalogue(), "amd64", wrappers)
    before = keys(source)
    (wrappers / "kubernetes-1.2.3" / name).write_text("changed\n")
    assert keys(source)[0] != before[0]
    assert keys(source)[1] != before[1]


def test_another_architecture_is_another_program(wrappers: Path) -> None:
    amd64, arm64 = (Modules(catalogue(), architecture, wrappers) for architecture in ("amd64", "arm64"))
    assert keys(amd64)[0] != keys(arm64)[0]
    assert amd64.userland_key() != arm64.userland_key()


def test_needs_are_named_before_anything_starts(wrappers: Path) -> None:
    source = Modules(catalogue(), "amd64", wrappers)
    assert set(source.debian_packages(PICK)) == {"gcc", "apt", "dpkg"}
    assert source.disk_mb(PICK) == 7
    assert source.name == "modules"


def test_a_wrapper_can_be_another_components(tmp_path: Path, wrappers: Path, builds: list[str]) -> None:
    changed = catalogue(lambda kubernetes: kubernetes["versions"]["1.2.3"].update(wrapper="flannel-1.2.3"))
    bring(Modules(changed, "amd64", wrappers), tmp_path / "cache")
    assert builds[0] == "flannel-1.2.3"
