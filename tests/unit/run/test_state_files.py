"""Damaged files of the state folder: each is named with its path and a remedy, or with its damaged lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import PaiError
from pai_install.health.memory.snapshot import Snapshot
from pai_install.health.memory.store import HealthStore
from pai_install.registry.identity import read_identity
from pai_install.run.journal import interrupted_run
from pai_install.run.lock import holder, site_lock
from pai_install.run.state import StateFolder, open_state
from pai_install.run.verification_state import Proof, read_proof
from pai_install.run.virtual_clusters import read_good
from pai_install.site.rotations import read_rotations
from pai_install.system.ssh import host_key_options

Read = Callable[[StateFolder], Any]
DEEP = ("[" * 100_000).encode()
CONTENTS: dict[str, bytes] = {
    "truncated": b'{"unproven": {"one": {"wh',
    "empty": b"",
    "binary": bytes(range(256)) * 8,
    "list": b"[1, 2]",
    "number": b"7",
    "other keys": b'{"a": {"b": 1}}',
    "other values": b'{"schema_version": [], "unproven": 3, "machines": 4, "acknowledged": 5, "data": 6}',
    "deep": DEEP,
    "NUL": b"\0" * 4096,
    "not UTF-8": b'{"unproven": "\xff\xfe"}',
}
# name -> reader of the file that it is
FILES: dict[str, Read] = {
    "proof.json": lambda state: read_proof(state.proof),
    "registry.json": lambda state: read_identity(state.registry),
    "storages.json": lambda state: read_rotations(state.path.parent),
    "virtual-clusters.json": lambda state: read_good(state.virtual_clusters),
    "known_hosts": lambda state: host_key_options(state.known_hosts, accept_new=True),
    "health/baseline.json": lambda state: HealthStore(state.health).baselines(),
    "health/acknowledged.json": lambda state: HealthStore(state.health).acknowledgements(),
    "health/history/one.jsonl": lambda state: HealthStore(state.health).history("one"),
}
# an empty list of host keys is a good one, and a damaged line of the history costs only itself
GOOD = {("known_hosts", "empty"), *(("health/history/one.jsonl", content) for content in CONTENTS)}
# these models take any key, and say nothing then
LENIENT = {("proof.json", "other keys")}


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return open_state(tmp_path)


def written(state: StateFolder, name: str, content: bytes) -> Path:
    path = state.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def require_named(path: Path, read: Callable[[], Any]) -> None:
    with pytest.raises(PaiError) as refused:
        read()
    error = refused.value
    assert str(path) in error.message
    assert error.remedy
    assert error.code


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(state: StateFolder, name: str, content: str) -> None:
    path = written(state, name, CONTENTS[content])
    if (name, content) in GOOD | LENIENT:
        FILES[name](state)
        return
    require_named(path, lambda: FILES[name](state))
    assert path.read_bytes() == CONTENTS[content], "it stays for a look at it"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_none(state: StateFolder, name: str) -> None:
    FILES[name](state)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_place_of_a_file_is_named(state: StateFolder, name: str) -> None:
    path = state.path / name
    path.mkdir(parents=True)
    require_named(path, lambda: FILES[name](state))


@contextmanager
def as_nobody() -> Iterator[None]:
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_user_is_named(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    open_to_all = [folder, *(it for it in folder.parents if it.is_relative_to("/tmp") and it != Path("/tmp"))]
    modes = {it: it.stat().st_mode for it in open_to_all}
    site = tmp_path_factory.mktemp("site")
    state = open_state(site)
    path = written(state, name, b"{}")
    path.chmod(0o600)
    try:
        for it in (*open_to_all, site, state.path, *(it for it in path.parents if it.is_relative_to(state.path))):
            it.chmod(0o755)
        with as_nobody():
            require_named(path, lambda: FILES[name](state))
    finally:
        for it, mode in modes.items():
            it.chmod(mode)


STARTED = {"run": "r1", "what": "run_started", "operation": "apply"}


@pytest.mark.parametrize("content", [content for name, content in CONTENTS.items() if content])
def test_a_damaged_line_of_the_journal_is_named_and_the_others_count(state: StateFolder, content: bytes) -> None:
    lines = json.dumps(STARTED).encode() + b"\n" + content + b"\n"
    path = written(state, "journal.jsonl", lines)
    said: list[str] = []
    found = interrupted_run(state.journal, said.append)
    assert found is not None
    assert found.run == "r1"
    harmless = content.startswith((b'{"a"', b'{"schema_version"', b'{"unproven": "'))
    assert [str(path) in line for line in said] == ([] if harmless else [True])


def test_a_crash_leaves_half_of_the_last_line_and_nobody_is_told(state: StateFolder) -> None:
    written(state, "journal.jsonl", json.dumps(STARTED).encode() + b'\n{"run": "r1", "wh')
    said: list[str] = []
    assert interrupted_run(state.journal, said.append) is not None
    assert said == []


def test_a_journal_that_cannot_be_read_is_named(state: StateFolder) -> None:
    state.journal.mkdir()
    require_named(state.journal, lambda: interrupted_run(state.journal, print))


@pytest.mark.parametrize("content", CONTENTS)
def test_a_damaged_card_of_the_lock_may_be_of_another_host(state: StateFolder, content: str) -> None:
    """The lock itself is the kernel's, which does not know of other hosts."""
    path = written(state, "lock.json", CONTENTS[content])
    assert holder(state.path) is None
    require_named(path, lambda: site_lock(state.path, "apply").__enter__())
    assert path.read_bytes() == CONTENTS[content]
    path.unlink()
    with site_lock(state.path, "apply"):
        assert json.loads(path.read_text())["verb"] == "apply"


@pytest.mark.parametrize("content", CONTENTS)
def test_damaged_lines_of_the_health_history_are_told_once(state: StateFolder, content: str) -> None:
    """The lines around them count. A run removes them."""
    run = Snapshot(1.0, "boot")
    HealthStore(state.health).remember({"one": run})
    path = state.health / "history" / "one.jsonl"
    path.write_bytes(CONTENTS[content] + b"\n" + path.read_bytes())
    said: list[str] = []
    store = HealthStore(state.health, said.append)
    assert store.histories(["one", "two"]) == {"one": [run]}
    assert [str(path) in line for line in said] == [True]
    store.remember({"one": Snapshot(2.0, "boot")})
    assert len(said) == 1
    assert [it.time for it in store.history("one")] == [1.0, 2.0]
    assert len(said) == 1


@pytest.mark.parametrize("secret", [b'{"registry": "S3cret-word"}', b'{"logins": ["S3cret-word"]}'])
def test_no_error_repeats_a_secret(state: StateFolder, secret: bytes) -> None:
    written(state, "registry.json", secret)
    with pytest.raises(PaiError) as refused:
        read_identity(state.registry)
    assert "S3cret" not in refused.value.message + refused.value.details


HOST_KEY = "10.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="


@pytest.mark.parametrize(
    "line", ["", "# mine", HOST_KEY, f"[10.0.0.1]:2222 {HOST_KEY.partition(' ')[2]}", f"@revoked {HOST_KEY}",
             "|1|c2FsdA==|aGFzaA== ssh-rsa AAAA comment of mine"],
)  # fmt: skip
def test_lines_of_host_keys(state: StateFolder, line: str) -> None:
    written(state, "known_hosts", f"{HOST_KEY}\n{line}\n".encode())
    assert host_key_options(state.known_hosts, accept_new=False)


def test_an_unproven_machine_is_kept(state: StateFolder) -> None:
    written(state, "proof.json", b'{"unproven": {"one": {"why": "x"}}}')
    assert read_proof(state.proof) == Proof.model_validate({"unproven": {"one": {"why": "x"}}})
