"""Requests to Azure's blob service: signed as it wants them, and refusals in words with the place of the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ansible_path import module_util
from tests.unit.modules.blob_service import BlobService, blob_service
from tests.unit.modules.conftest import ModuleFailedError

blob = module_util("pai_blob")
Run = Callable[..., dict[str, Any]]
PLACES = {"docker_cache_azure_account_key": "/site/config.yaml:7:1"}


@pytest.fixture
def service() -> Iterator[BlobService]:
    with blob_service() as found:
        yield found


def test_a_signature_that_a_real_service_took() -> None:
    """Recorded from Azurite 3.35, which took it."""
    account = blob.Account(
        "paicache", "cGFpLWNhY2hlLWxhYi1rZXktMTIzNDU2Nzg5MDEyMzQ1Ng==", "cache", "http://host:1/paicache"
    )
    headers = {
        "x-ms-date": "Sun, 22 Nov 2026 17:00:00 GMT", "x-ms-version": "2021-08-06", "x-ms-blob-type": "BlockBlob",
        "Content-Length": "2", "Content-Type": "application/octet-stream",
    }  # fmt: skip
    address = "http://host:1/paicache/cache/docker.io/a%20b?comp=block&blockid=MDA%3D"
    assert (
        blob.signature(account, "PUT", address, headers)
        == "SharedKey paicache:+b5+jrg//L3RJDfZXptMKlquEVSoeM7fzDKOsmtkhEo="
    )


def test_what_is_written_is_read(service: BlobService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob, "BLOCK", 4)
    container = blob.Container(service.account)
    container.require()
    for name, pieces in {"a/large": [b"abc", b"def", b"g"], "a/b c": [b"x"], "a/empty": [], "b": [b"y"]}.items():
        container.write(name, iter(pieces))
    assert dict(container.sizes("a/")) == {"a/large": 7, "a/b c": 1, "a/empty": 0}
    assert b"".join(container.read("a/large")) == b"abcdefg"
    with pytest.raises(FileNotFoundError):
        list(container.read("a/none"))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"access_key": "d3Jvbmc="}, "/site/config.yaml:7:1: docker_cache_azure_account_key: "),
        ({"access_key": "no base64"}, "/site/config.yaml:7:1: docker_cache_azure_account_key: is not base64"),
        ({"container": "none"}, "docker_cache_azure_container_name: the account acc has no container none (HTTP 404"),
        ({"endpoint": "http://127.0.0.1:9/acc"}, "registry.azure-endpoint: http://127.0.0.1:9/acc does not answer"),
    ],
)
def test_what_is_wrong_is_said_before_anything_changes(
    service: BlobService, run_module: Run, other: dict[str, str], said: str
) -> None:
    words = {"registries": [], "places": PLACES}
    assert run_module("pai_registry_probe", azure=service.settings(), **words)["changed"] is False
    with pytest.raises(ModuleFailedError) as failed:
        run_module("pai_registry_probe", azure=service.settings(**other), **words)
    assert failed.value.result["msg"].startswith(said)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "ResourceNotFound", "docker_cache_azure_account_name: "),
        (400, "", "registry.azure-endpoint: "),
        (503, "ServerBusy", "registry.azure-endpoint: "),
        (400, "OutOfRangeInput", "docker_cache_azure_account_name: "),
    ],
)
def test_other_answers_name_a_setting_too(service: BlobService, status: int, code: str, said: str) -> None:
    service.fails["/"] = (status, code)
    assert blob.wrong_account(service.settings(), {}).startswith(said)


def test_without_azure_nothing_is_asked(run_module: Run) -> None:
    assert run_module("pai_registry_probe", registries=[])["silent"] == []
