from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pai_install.components.catalogue import GoToolchain, load_catalogue
from pai_install.components.golang import (
    build_environment,
    fetch_toolchain,
    go_command,
    go_version,
    module_sum,
    proxies,
)
from pai_install.components.progress import silent
from tests.errors import raises

if TYPE_CHECKING:
    from .conftest import WebServer

PREFIX = "golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64/"
PAGE = "/golang.org/toolchain/@v/v0.0.1-go1.26.8.linux-amd64.zip"


def archive(files: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as content:
        for name, body in files.items():
            content.writestr(name, body)
    return data.getvalue()


TOOLCHAIN = archive(
    {
        f"{PREFIX}bin/go": b"#!/bin/sh\necho go1.26.8\n",
        f"{PREFIX}pkg/tool/linux_amd64/link": b"link",
        f"{PREFIX}src/_go.mod": b"module std\n",
        f"{PREFIX}README": b"read me",
    }
)


def sum_of(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as content:
        return module_sum(content)


def pinned(data: bytes = TOOLCHAIN) -> GoToolchain:
    return GoToolchain(version="1.26.8", toolchain={"amd64": sum_of(data)})


def fake_go(folder: Path, version: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "go").write_text(f"#!/bin/sh\necho {version}\n")
    (folder / "go").chmod(0o755)


def test_a_module_sum_is_the_one_go_computes() -> None:
    # the order in the archive does not matter
    assert sum_of(archive({"def": b"data for def", "abc": b"data for abc"})) == sum_of(
        archive({"abc": b"data for abc", "def": b"data for def"})
    )
    # what `go mod download -json` says of a module with these two files
    module = "example.org/abc@v1.0.0/"
    assert (
        sum_of(archive({f"{module}go.mod": b"module example.org/abc\n", f"{module}abc.go": b"package abc\n"}))
        == "h1:BU1/M5r0+GGixr25m4HZDG11gAzpSvW92o9JokIXl2c="
    )


def test_the_catalogue_pins_a_go_that_every_wrapper_accepts() -> None:
    pinned_version = tuple(int(part) for part in load_catalogue().go.version.split("."))
    wrappers = Path(__file__).parents[3] / "installer/pai_install/components/wrappers"
    for go_mod in wrappers.glob("*/go.mod"):
        (line,) = [line for line in go_mod.read_text().splitlines() if line.startswith("go ")]
        assert tuple(int(part) for part in line.split()[1].split(".")) <= pinned_version, go_mod


@pytest.mark.parametrize(
    ("goproxy", "expected"),
    [
        ("", ["https://proxy.golang.org"]),
        ("https://one.example/,direct", ["https://one.example"]),
        ("https://one.example|http://two.example/go,off", ["https://one.example", "http://two.example/go"]),
        ("direct", []),
        ("file:///srv/modules", ["file:///srv/modules"]),
    ],
)
def test_goproxy_is_honoured(goproxy: str, expected: list[str]) -> None:
    assert proxies({"GOPROXY": goproxy}) == expected


def test_no_goproxy_is_the_public_proxy() -> None:
    assert proxies({}) == ["https://proxy.golang.org"]


@pytest.mark.parametrize(
    ("told", "version"), [("go1.26.8", (1, 26, 8)), ("go1.27rc1", (1, 27)), ("devel go1.x", ()), ("", ())]
)
def test_the_version_of_go_is_numbers(tmp_path: Path, told: str, version: tuple[int, ...]) -> None:
    fake_go(tmp_path, told)
    assert go_version(tmp_path / "go") == version


@pytest.mark.parametrize("version", ["go1.26.8", "go1.27.0"])
def test_a_new_enough_go_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    fake_go(tmp_path / "bin", version)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert go_command(pinned(), "amd64", tmp_path / "kept", silent) == tmp_path / "bin/go"


def test_an_old_go_is_not_used(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go(tmp_path / "bin", "go1.19.8")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("GOPROXY", f"{web.url},direct")
    web.pages[PAGE] = TOOLCHAIN
    told: list[str] = []
    command = go_command(pinned(), "amd64", tmp_path / "kept", told.append)
    assert command == tmp_path / "kept/go1.26.8/bin/go"
    assert go_version(command) == (1, 26, 8)
    assert told == ["go 1.26.8: fetching the toolchain (the controller host has none this new)"]
    assert go_command(pinned(), "amd64", tmp_path / "kept", told.append) == command
    assert len(web.asked) == len(told) == 1


def test_a_toolchain_is_unpacked_ready_to_run(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", web.url)
    web.pages[PAGE] = TOOLCHAIN
    fetch_toolchain(pinned(), "amd64", tmp_path / "go")
    assert (tmp_path / "go/bin/go").stat().st_mode & 0o111
    assert (tmp_path / "go/pkg/tool/linux_amd64/link").stat().st_mode & 0o111
    assert not (tmp_path / "go/README").stat().st_mode & 0o111
    assert (tmp_path / "go/src/go.mod").read_bytes() == b"module std\n"
    assert [path.name for path in tmp_path.iterdir()] == ["go"]


def test_a_changed_toolchain_is_refused(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", web.url)
    web.pages[PAGE] = archive({f"{PREFIX}bin/go": b"evil"})
    with raises("go-checksum-mismatch"):
        fetch_toolchain(pinned(), "amd64", tmp_path / "go")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_leads_elsewhere_is_refused(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", web.url)
    web.pages[PAGE] = archive({f"{PREFIX}../../evil": b"x"})
    with raises("go-archive-path-unsafe"):
        fetch_toolchain(pinned(web.pages[PAGE]), "amd64", tmp_path / "a/go")
    assert not (tmp_path / "evil").exists()


def test_the_next_proxy_is_asked_when_one_fails(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", f"{web.url}/down,{web.url}")
    web.pages[PAGE] = TOOLCHAIN
    fetch_toolchain(pinned(), "amd64", tmp_path / "go")
    assert web.paths() == [f"/down{PAGE}", PAGE]


def test_no_proxy_at_all_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    with raises("go-proxy-missing") as failed:
        fetch_toolchain(pinned(), "amd64", tmp_path / "go")
    assert "install Go" in failed.value.remedy


def test_proxies_that_all_fail_are_all_named(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", f"{web.url}/one,{web.url}/two")
    with raises("go-toolchain-download-failed") as failed:
        fetch_toolchain(pinned(), "amd64", tmp_path / "go")
    # the port of the server may have these digits, too
    assert len(re.findall(r"\b404\b", failed.value.details)) == 2


def test_an_architecture_without_a_sum_needs_go_installed(tmp_path: Path) -> None:
    with raises("go-checksum-not-pinned", "arm64"):
        fetch_toolchain(pinned(), "arm64", tmp_path / "go")


def test_a_build_keeps_to_folders_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "https://corp.example")
    monkeypatch.setenv("GOMODCACHE", "/home/admin/go/pkg/mod")
    environment = build_environment(tmp_path, cgo=False)
    for name in ("GOMODCACHE", "GOCACHE", "GOTMPDIR"):
        assert Path(environment[name]).is_relative_to(tmp_path)
        assert Path(environment[name]).is_dir()
    assert environment["GOPROXY"] == "https://corp.example"
    assert (environment["GOTOOLCHAIN"], environment["GOWORK"]) == ("local", "off")
    assert environment["CGO_ENABLED"] == "0"
    assert build_environment(tmp_path, cgo=True)["CGO_ENABLED"] == "1"
