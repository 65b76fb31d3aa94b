"""The cache's content in another place: nothing is lost, nothing wrong is copied, nothing is sent twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.modules.blob_service import BlobService, blob_service
from tests.unit.modules.conftest import ModuleFailedError

Run = Callable[..., dict[str, Any]]
LAYER, MANIFEST = b"layer" * 1000, b"{}"
ROOT = "docker/registry/v2"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def blob_path(data: bytes) -> str:
    return f"{ROOT}/blobs/sha256/{digest(data)[:2]}/{digest(data)}/data"


REPOSITORY = f"{ROOT}/repositories/team/app"
TAG = f"{REPOSITORY}/_manifests/tags/1/current/link"
FILES = {
    blob_path(LAYER): LAYER,
    blob_path(MANIFEST): MANIFEST,
    f"{REPOSITORY}/_layers/sha256/{digest(LAYER)}/link": f"sha256:{digest(LAYER)}".encode(),
    f"{REPOSITORY}/_manifests/revisions/sha256/{digest(MANIFEST)}/link": f"sha256:{digest(MANIFEST)}".encode(),
    TAG: f"sha256:{digest(MANIFEST)}".encode(),
}
KEY = f"team/app@sha256:{digest(LAYER)}"


@pytest.fixture
def service() -> Iterator[BlobService]:
    with blob_service() as found:
        yield found


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with the content of one upstream, and with what the cache is about to write."""
    folder = tmp_path / "old"
    unfinished = {f"{REPOSITORY}/_uploads/1/data": b"half", f"{blob_path(b'x')}.tmp": b"half"}
    for path, data in {**FILES, **unfinished}.items():
        file = folder / "docker.io" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def copy(run_module: Run, source: dict[str, str], target: dict[str, str], **other: Any) -> dict[str, Any]:
    return run_module("pai_registry_copy", source=source, target=target, upstreams=["docker.io", "quay.io"], **other)


def content(folder: Path) -> dict[str, bytes]:
    root = folder / "docker.io"
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    files.pop("scheduler-state.json")
    return files


def test_from_folder_to_folder(run_module: Run, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "far" / "new"
    done = copy(run_module, {"folder": str(old)}, {"folder": str(new)})
    assert (done["changed"], done["done"]) == (True, True)
    assert [one["verdict"] for one in done["findings"]] == ["PASS", "PASS"]
    assert content(new) == FILES
    assert {path.stat().st_mode & 0o077 for path in new.rglob("*")} == {0}
    assert copy(run_module, {"folder": str(old)}, {"folder": str(new)})["changed"] is False


def test_to_azure_and_back(run_module: Run, old: Path, tmp_path: Path, service: BlobService) -> None:
    assert copy(run_module, {"folder": str(old)}, service.settings())["done"]
    assert {name.removeprefix("docker.io/"): data for name, data in service.blobs.items() if ROOT in name} == FILES
    service.asked.clear()
    assert copy(run_module, {"folder": str(old)}, service.settings())["changed"] is False
    assert [line for line in service.asked if line.startswith("PUT") and "scheduler" not in line] == []
    shutil.rmtree(old)
    assert copy(run_module, service.settings(), {"folder": str(tmp_path / "new")})["done"]
    assert content(tmp_path / "new") == FILES


def test_check_mode_copies_nothing(run_module: Run, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert copy(run_module, {"folder": str(old)}, {"folder": str(new)}, check=True)["changed"] is True
    assert not new.exists()


def test_time_that_is_up_is_no_failure(run_module: Run, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert copy(run_module, {"folder": str(old)}, {"folder": str(new)}, seconds=-1)["done"] is False
    assert not list(new.rglob("scheduler-state.json"))
    assert copy(run_module, {"folder": str(old)}, {"folder": str(new)})["done"] is True


def test_half_a_file_is_copied_again(run_module: Run, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "docker.io" / blob_path(LAYER)
    new.parent.mkdir(parents=True)
    new.write_bytes(b"half")
    copy(run_module, {"folder": str(old)}, {"folder": str(tmp_path / "new")})
    assert content(tmp_path / "new") == FILES


def test_content_that_is_not_what_its_name_says_is_left_out(
    run_module: Run, old: Path, tmp_path: Path, service: BlobService
) -> None:
    (old / "docker.io" / blob_path(LAYER)).write_bytes(b"rotten")
    for target in ({"folder": str(tmp_path / "new")}, service.settings()):
        done = copy(run_module, {"folder": str(old)}, target)
        assert (done["done"], done["findings"][0]["verdict"]) == (True, "WARN")
    assert blob_path(LAYER) not in content(tmp_path / "new")
    assert f"docker.io/{blob_path(LAYER)}" not in service.blobs


def test_what_the_cache_has_written_in_the_new_place_stays(run_module: Run, old: Path, tmp_path: Path) -> None:
    """A tag that means another image by now is brought along before the switch, and left alone after it."""
    new, places = tmp_path / "new", ({"folder": str(old)}, {"folder": str(tmp_path / "new")})
    copy(run_module, *places)
    newer = f"sha256:{'e' * 64}".encode()
    (old / "docker.io" / TAG).write_bytes(newer)
    copy(run_module, *places, in_use=True)
    assert content(new)[TAG] == FILES[TAG]
    copy(run_module, *places)
    assert content(new)[TAG] == newer


def test_a_list_that_is_nested_without_end_is_none(run_module: Run, old: Path, tmp_path: Path) -> None:
    (old / "docker.io" / "scheduler-state.json").write_text("[" * 100_000)
    assert copy(run_module, {"folder": str(old)}, {"folder": str(tmp_path / "new")})["done"] is True
    assert content(tmp_path / "new") == FILES


def test_what_is_copied_expires(run_module: Run, old: Path, tmp_path: Path) -> None:
    """The times of the old place count as long as they are ahead; what it has no time for gets the whole time."""
    state = old / "docker.io" / "scheduler-state.json"
    gone = f"team/app@sha256:{digest(MANIFEST)}"
    times = {KEY: "2999-01-01T00:00:00Z", gone: "2020-01-01T00:00:00Z", "other@sha256:0": "2999-01-01T00:00:00Z"}
    state.write_text(json.dumps({key: {"Key": key, "ExpiryData": time, "EntryType": 0} for key, time in times.items()}))
    copy(run_module, {"folder": str(old)}, {"folder": str(tmp_path / "new")}, keep_hours=48)
    found = json.loads((tmp_path / "new" / "docker.io" / "scheduler-state.json").read_text())
    assert found.keys() == {KEY, gone}
    assert found[KEY] == {"Key": KEY, "ExpiryData": "2999-01-01T00:00:00Z", "EntryType": 0}
    assert found[gone]["EntryType"] == 1
    left = datetime.fromisoformat(found[gone]["ExpiryData"]) - datetime.now(UTC)
    assert 47 * 3600 < left.total_seconds() < 49 * 3600


def test_a_disk_without_room_is_told_first(
    run_module: Run, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=100))
    with pytest.raises(ModuleFailedError, match=r"GB free, and 0\.0 GB are to be copied there"):
        copy(run_module, {"folder": str(old)}, {"folder": str(tmp_path / "new")})
    assert not (tmp_path / "new").exists()


def test_a_container_that_does_not_exist_is_told_first(run_module: Run, old: Path, service: BlobService) -> None:
    places = {"docker_cache_azure_container_name": "config.yaml:9:1"}
    with pytest.raises(
        ModuleFailedError, match=r"config\.yaml:9:1: docker_cache_azure_container_name: the account acc"
    ):
        copy(run_module, {"folder": str(old)}, service.settings(container="none"), places=places)
    assert service.blobs == {}
