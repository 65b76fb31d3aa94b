from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pai_install.components.access import Mirror
from pai_install.components.catalogue import load_catalogue
from pai_install.components.fetch import cached, fetch, open_source, requirements
from pai_install.components.model import PinnedComponent, Selection, SourceName
from pai_install.components.source import BuildContext, box_architecture, recipe_key
from pai_install.components.store import Contents, StagedFile
from pai_install.errors import ExitCode, PaiError
from tests.errors import raises

ONE, TWO = PinnedComponent("runc", "1.4.3"), PinnedComponent("etcd", "3.6.8")
BOTH = Selection("1.36.3", "modules", (ONE, TWO))


class Source:
    """Makes one small file per component; fails at the components named."""

    def __init__(self, *failing: str, debian: Sequence[str] = (), disk_mb: int = 1) -> None:
        self.failing, self.debian, self.needed = failing, debian, disk_mb
        self.made: list[PinnedComponent] = []
        # with how many were made before
        self.prefetched: list[tuple[PinnedComponent, int]] = []

    @property
    def name(self) -> SourceName:
        return "modules"

    def key(self, pick: PinnedComponent) -> str:
        return f"{pick.component}-{pick.version}"

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        del pick
        return {}

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        return tuple(self.debian) if pick == ONE else ()

    def disk_mb(self, pick: PinnedComponent) -> int:
        del pick
        return self.needed

    @contextmanager
    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> Iterator[None]:
        del context
        self.prefetched.append((pick, len(self.made)))
        yield

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        if pick.component in self.failing:
            raise PaiError("no network")
        self.made.append(pick)
        context.progress(f"{pick.component}: working")
        (staged / pick.component).write_text(pick.version)
        return Contents((StagedFile(pick.component, pick.version, "binary", staged / pick.component),))


def test_everything_selected_is_there_in_order(tmp_path: Path) -> None:
    result = fetch(BOTH, Source(), tmp_path)
    assert [file.name for file in result.files] == ["runc", "etcd"]
    assert result.kubernetes_version == "1.36.3"
    assert result.file("etcd").path.read_text() == "3.6.8"


def test_a_second_fetch_makes_nothing(tmp_path: Path) -> None:
    source = Source()
    assert fetch(BOTH, source, tmp_path) == fetch(BOTH, source, tmp_path)
    assert source.made == [ONE, TWO]


def test_the_next_component_is_prefetched_while_one_is_made(tmp_path: Path) -> None:
    source = Source()
    fetch(BOTH, source, tmp_path)
    assert source.prefetched == [(TWO, 0)]


def test_what_was_finished_before_a_failure_is_kept(tmp_path: Path) -> None:
    with pytest.raises(PaiError, match="no network") as caught:
        fetch(BOTH, Source("etcd"), tmp_path)
    source = Source()
    fetch(BOTH, source, tmp_path)
    assert source.made == [TWO]
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED


def test_progress_counts_what_is_left_to_do(tmp_path: Path) -> None:
    fetch(Selection("1.36.3", "modules", (TWO,)), Source(), tmp_path)
    told: list[str] = []
    fetch(Selection("1.36.3", "modules", (TWO, ONE, PinnedComponent("cni", "1"))), Source(), tmp_path, told.append)
    assert told[0] == "[1/2] runc: working"
    assert told[1].startswith("[1/2] runc 1.4.3: ready, ")
    assert told[2] == "[2/2] cni: working"


def test_a_warm_fetch_is_silent(tmp_path: Path) -> None:
    fetch(BOTH, Source(), tmp_path)
    told: list[str] = []
    fetch(BOTH, Source(), tmp_path, told.append)
    assert told == []


def test_too_little_disk_is_found_before_any_work(tmp_path: Path) -> None:
    source = Source(disk_mb=1 << 40)
    with raises("disk-space-low"):
        fetch(BOTH, source, tmp_path)
    assert source.made == []


def test_disk_is_not_asked_for_when_nothing_is_to_be_made(tmp_path: Path) -> None:
    fetch(BOTH, Source(), tmp_path)
    fetch(BOTH, Source(disk_mb=1 << 40), tmp_path)


@pytest.fixture
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.components.requirements.PROBES", {"gcc": "/nowhere/gcc", "apt": "/"})


@pytest.mark.usefixtures("_no_compiler")
def test_missing_packages_are_named_before_any_work(tmp_path: Path) -> None:
    source = Source(debian=["gcc", "apt"])
    assert requirements(BOTH, source, tmp_path) == ("gcc",)
    with raises("build-tools-missing") as refused:
        fetch(BOTH, source, tmp_path)
    assert refused.value.exit_code == ExitCode.PREFLIGHT_FAILED
    assert "apt-get install gcc" in refused.value.remedy
    assert source.made == []


@pytest.mark.usefixtures("_no_compiler")
def test_what_is_in_the_cache_needs_no_packages(tmp_path: Path) -> None:
    fetch(BOTH, Source(), tmp_path)
    assert requirements(BOTH, Source(debian=["gcc"]), tmp_path) == ()


def test_status_fetches_nothing(tmp_path: Path) -> None:
    fetch(Selection("1.36.3", "modules", (TWO,)), Source(), tmp_path)
    source = Source()
    found = cached(BOTH, source, tmp_path)
    assert found[ONE] is None
    assert found[TWO] is not None
    assert source.made == []


@pytest.mark.parametrize("name", ["upstream", "modules"])
def test_a_source_is_opened_by_its_name(name: SourceName) -> None:
    assert open_source(load_catalogue(), name).name == name


def test_a_mirror_needs_an_address() -> None:
    with raises("mirror-url-missing") as refused:
        open_source(load_catalogue(), "mirror")
    assert refused.value.exit_code == ExitCode.SITE_INVALID
    assert open_source(load_catalogue(), "mirror", Mirror("https://m.example")).name == "mirror"


def test_upstream_ignores_an_address_meant_for_a_mirror() -> None:
    assert open_source(load_catalogue(), "upstream", Mirror("https://m.example")).name == "upstream"


def test_a_recipe_key_depends_on_content_not_on_order() -> None:
    assert recipe_key("runc", "1", {"a": 1, "b": 2}) == recipe_key("runc", "1", {"b": 2, "a": 1})
    assert recipe_key("runc", "1", {"a": 1}) != recipe_key("runc", "1", {"a": 2})


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_architectures_have_the_names_upstream_uses(machine: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert box_architecture() == name


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with raises("controller-host-architecture", "riscv64"):
        box_architecture()
