from __future__ import annotations

import hashlib
import os
import socket
import threading
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pai_install.components import download as module
from pai_install.components.download import digest_of, download, fetch_bytes
from pai_install.components.progress import silent
from tests.errors import raises

if TYPE_CHECKING:
    from .conftest import WebServer

BODY = os.urandom(3 << 20)
SUM = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.components.download.time.sleep", lambda _: None)


def test_a_file_arrives_verified_and_whole(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    target = download(f"{web.url}/kubeadm", tmp_path / "deep/kubeadm", SUM, silent)
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]


def test_a_changed_file_is_refused_and_not_kept(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY[:-1] + b"!"
    with raises("download-checksum-mismatch") as refused:
        download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent)
    assert SUM in refused.value.message
    assert hashlib.sha256(web.pages["/kubeadm"]).hexdigest() in refused.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_asked_for_again(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "kubeadm").write_bytes(BODY)
    download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent)
    assert web.asked == []


def test_a_damaged_file_is_replaced(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    (tmp_path / "kubeadm").write_bytes(b"half")
    assert download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent).read_bytes() == BODY


def test_a_broken_download_goes_on_where_it_stopped(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    web.cut["/kubeadm"] = 1 << 20
    download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent)
    assert [headers.get("Range") for _, headers in web.asked] == [None, f"bytes={1 << 20}-"]
    assert (tmp_path / "kubeadm").read_bytes() == BODY


def test_a_part_of_an_earlier_run_is_used(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    (tmp_path / "kubeadm.part").write_bytes(BODY[:1000])
    download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent)
    assert web.asked[0][1]["Range"] == "bytes=1000-"


def test_a_complete_part_is_only_checked(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    (tmp_path / "kubeadm.part").write_bytes(BODY)
    assert download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent).read_bytes() == BODY


def test_a_server_without_ranges_starts_over(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    web.ranges = False
    (tmp_path / "kubeadm.part").write_bytes(b"something else")
    assert download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent).read_bytes() == BODY


def test_giving_up_keeps_what_came(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    web.pages["/kubeadm"] = BODY
    web.cut["/kubeadm"] = 1 << 20
    with raises("download-retries-exhausted") as stopped:
        download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent)
    assert "continue the download" in stopped.value.remedy
    assert (tmp_path / "kubeadm.part").stat().st_size == 1 << 20


def test_a_missing_page_names_the_address(web: WebServer, tmp_path: Path) -> None:
    with raises("download-refused", "/kubeadm", "404"):
        download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent)


def test_an_unreachable_server_is_an_error_one_can_act_on(tmp_path: Path) -> None:
    with raises("server-unreachable") as failed:
        download("http://127.0.0.1:1/x", tmp_path / "x", SUM, silent)
    assert "proxy" in failed.value.remedy


@pytest.mark.parametrize("url", ["ftp://host/x", "/etc/passwd", "javascript:1", "file:///etc/passwd"])
def test_other_schemes_are_refused(url: str) -> None:
    with raises("download-url-invalid", url):
        fetch_bytes(url)


def test_a_document_longer_than_allowed_is_refused(web: WebServer) -> None:
    web.pages["/long"] = b"x" * 11
    assert fetch_bytes(f"{web.url}/long", limit=11) == b"x" * 11
    with raises("download-too-long", "10"):
        fetch_bytes(f"{web.url}/long", limit=10)


def test_a_login_challenge_reaches_the_caller(web: WebServer) -> None:
    web.tokens.add("/private")
    with pytest.raises(urllib.error.HTTPError):
        fetch_bytes(f"{web.url}/private")


def test_a_token_does_not_follow_a_redirect(web: WebServer) -> None:
    web.pages["/storage"] = b"blob"
    web.redirects["/blob"] = f"{web.url}/storage"
    assert fetch_bytes(f"{web.url}/blob", headers={"Authorization": "Bearer secret", "Accept": "x"}) == b"blob"
    (_, first), (_, second) = web.asked
    assert first["Authorization"] == "Bearer secret"
    assert "Authorization" not in second
    assert second["Accept"] == "x"


def test_digest_of_is_the_registry_form() -> None:
    assert digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_download_without_end_is_refused_and_not_kept(web: WebServer, tmp_path: Path) -> None:
    web.pages["/kubeadm"] = BODY
    with raises("download-too-long", "10"):
        download(f"{web.url}/kubeadm", tmp_path / "kubeadm", SUM, silent, limit=10)
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_says_it_has_no_end_is_refused_before_it_comes(tmp_path: Path) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Length: 1125899906842624\r\n\r\n"
    with told(head) as url, raises("download-too-long"):
        download(url, tmp_path / "x", SUM, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_download_of_a_byte_a_second_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_START_S", 0.3)
    with told("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", drip=True) as url:
        with raises("download-retries-exhausted"):
            download(url, tmp_path / "x", SUM, silent)
        with raises("download-interrupted"):
            fetch_bytes(url)


@contextmanager
def told(head: str, *, drip: bool = False) -> Iterator[str]:
    """A server that answers so, and then with a byte every tenth of a second or not at all."""

    def serve() -> None:
        while True:
            try:
                connection, _address = server.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(4096)
                connection.sendall(head.encode())
                while drip:
                    connection.sendall(b"x")
                    threading.Event().wait(0.1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/x"
        server.shutdown(socket.SHUT_RDWR)
