"""Where components come from: cache, then what the site says; nothing is fetched to find out."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.components.model import PinnedComponent
from pai_install.components.upstream import Releases
from pai_install.preflight import source
from pai_install.preflight.source import answer_problem, source_finding
from tests.unit.preflight.machines import CONFIG, STORAGES, STORING, read_site

MIRROR = (
    "component_source: mirror\ncomponent_mirror_url: http://mirror.internal:8080/files\n"
    "component_mirror_username: me\ncomponent_mirror_password: word\n"
)


@pytest.fixture(autouse=True)
def _able_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box with every package and enough disk; what this one has is not the matter here."""
    monkeypatch.setattr(source, "missing", lambda _packages: ())
    monkeypatch.setattr(source, "check_disk", lambda _folder, _needed: None)


def test_a_real_file_or_image_of_each_upstream_server_is_asked_for(tmp_path: Path) -> None:
    asked: list[str] = []

    def fine(releases: Releases, wanted: Sequence[PinnedComponent]) -> dict[str, str]:
        asked.extend(releases.probes(wanted))
        return dict.fromkeys(asked, "")

    site = read_site(tmp_path / "s", config=CONFIG + "component_source: upstream\n")
    found = source_finding(site, cache=tmp_path / "cache", fetch=fine)
    assert (found.verdict, found.subject) == (Verdict.PASS, "controller host")
    hosts = [url.split("/")[2] for url in asked]
    assert {"dl.k8s.io", "github.com", "registry.k8s.io", "ghcr.io"} <= set(hosts)
    assert len(hosts) == len(set(hosts))
    assert all(url.split("/", 3)[3] for url in asked)


def test_a_mirror_stands_for_all_without_its_login(tmp_path: Path) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + MIRROR)
    found = source_finding(
        site, cache=tmp_path / "cache", fetch=lambda it, picks: dict.fromkeys(it.probes(picks), "timed out")
    )
    assert found.verdict is Verdict.FAIL
    assert found.value.count("http://mirror.internal:8080/files/") == 2, "one file and one image"
    assert "word" not in found.value
    assert "component_source" in found.remedy


@pytest.mark.parametrize(
    ("proxies", "asked"),
    [("https://proxy.example.org,direct", ["https://proxy.example.org/"]), ("off", []), ("direct", [])],
)
def test_modules_come_through_the_first_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: str, asked: list[str]
) -> None:
    monkeypatch.setenv("GOPROXY", proxies)
    seen: list[str] = []
    site = read_site(tmp_path / "s", config=CONFIG + "component_source: modules\n")
    found = source_finding(site, cache=tmp_path / "cache", probe=lambda url: seen.append(url) or "")  # type: ignore[func-returns-value]
    assert found.verdict is Verdict.PASS
    assert seen == asked


def test_what_this_box_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    monkeypatch.setattr(source, "missing", lambda _packages: ("gcc", "libc6-dev"))
    site = read_site(tmp_path / "s", config=CONFIG + "component_source: modules\n")
    found = source_finding(site, cache=tmp_path / "cache", probe=lambda _url: "")
    assert found.verdict is Verdict.FAIL
    assert "gcc, libc6-dev" in found.message
    assert found.remedy == snapshot


def test_an_image_file_that_is_not_there(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + "component_images: {hivedscheduler: gone.tar}\n")
    found = source_finding(site, cache=tmp_path / "cache", probe=lambda _url: "")
    assert found.verdict is Verdict.FAIL
    assert found.message == snapshot


def test_a_bundle_that_is_not_there(tmp_path: Path) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + "component_source: bundle\ncomponent_bundle: gone.tar\n")
    found = source_finding(site, cache=tmp_path / "cache", probe=lambda _url: "")
    assert found.verdict is Verdict.FAIL
    assert "gone.tar" in found.message


def test_what_upstream_lacks_for_arm64_is_said_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr("pai_install.components.choose.box_architecture", lambda: "arm64")
    site = read_site(tmp_path / "s", STORING, CONFIG + "component_source: upstream\n", STORAGES)
    found = source_finding(site, cache=tmp_path / "cache", fetch=lambda _releases, _picks: {})
    assert found.verdict is Verdict.FAIL
    assert found.message == snapshot
    assert "component_images" in found.remedy


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(int(self.path.strip("/") or 200))
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Says nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that answers with the status in the path."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.mark.parametrize(
    ("status", "problem"), [(200, ""), (404, ""), (403, ""), (500, ""), (407, "the proxy answers 407")]
)
def test_any_answer_of_the_server_itself_will_do(server: str, status: int, problem: str) -> None:
    assert answer_problem(f"{server}/{status}").startswith(problem)
    assert bool(answer_problem(f"{server}/{status}")) == bool(problem)


def test_no_answer(server: str) -> None:
    del server
    assert "refused" in answer_problem("http://127.0.0.1:1/")
    assert answer_problem("nonsense")
    assert answer_problem("http://server.invalid/") == "the host name has no address"
