"""Writes a support bundle: one archive for the owner only, of limited size, with a list of included and
omitted files.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.run.state import StateFolder
from pai_install.run.support.gather import Collected
from pai_install.run.support.masks import Masks
from pai_install.system.files import read_bounded

SITE_FILES = ("layout.yaml", "config.yaml", "services-configuration.yaml")
_RUN_FILES = ("report.md", "report.json", "plan.json", "preflight.json", "events.jsonl", "ansible.log")
_STATE_FILES = ("journal.jsonl", "proof.json")
_RUNS = 5
_LARGEST_FILE = 2_000_000
_LARGEST_SECRETS = 16 << 20


def known_secrets(site_dir: Path, state: StateFolder) -> Iterator[object]:
    """Yields all data on the controller host with named secrets: the site's files, and the state folder's."""
    for name in SITE_FILES:
        try:
            yield YAML(typ="safe").load(read_bounded(site_dir / name, _LARGEST_SECRETS))
        except (OSError, YAMLError, ValueError, ArithmeticError, RecursionError):
            continue  # a file that cannot be read is left out of the bundle, too
    for path in (*state.path.glob("*.json"), *state.path.glob("rotations/*.json")):
        try:
            yield json.loads(read_bounded(path, _LARGEST_SECRETS))
        except (OSError, ValueError, RecursionError):
            continue
    yield {"password": list(_kubeconfig(state.path / "kubeconfig"))}


def _kubeconfig(path: Path) -> Iterator[str]:
    try:
        users = YAML(typ="safe").load(read_bounded(path, _LARGEST_SECRETS))["users"]
        for entry in users:
            # Certificates in a kubeconfig are public, and keys are not.
            yield from (value for key, value in entry["user"].items() if key.endswith("-data") and "key" in key)
    except (OSError, YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError):
        return


def from_controller_host(site_dir: Path, state: StateFolder, found: Collected) -> None:
    """Adds the site's files, the reports of the last runs, and their data in the state folder."""
    for name in SITE_FILES:
        _add(found, f"site/{name}", site_dir / name)
    for name in _STATE_FILES:
        _add(found, f"state/{name}", state.path / name)
    for run in state.all_runs()[-_RUNS:]:
        for name in _RUN_FILES:
            _add(found, f"runs/{run.name}/{name}", run.path / name)


def _add(found: Collected, name: str, path: Path) -> None:
    # A link could add a file of someone else's choice to a bundle that leaves this host.
    if path.is_symlink() or not path.is_file():
        return
    try:
        with path.open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            handle.seek(max(0, size - _LARGEST_FILE))
            text = handle.read().decode("utf-8", "replace")
    except OSError:
        return
    cut = f"[{size - _LARGEST_FILE} bytes before this are left out]\n" if size > _LARGEST_FILE else ""
    found.files[name] = cut + text


def write_bundle(path: Path, found: Collected, masks: Masks, largest: int) -> tuple[str, ...]:
    """Writes the archive atomically and returns the names of omitted files. largest: bytes of all texts before
    compression.

    Smaller files have priority, so that one long log displaces no others.
    """
    masked = {name: masks.text(text).encode("utf-8", "replace") for name, text in found.files.items()}
    kept: dict[str, bytes] = {}
    left, dropped = largest, []
    for name, data in sorted(masked.items(), key=lambda item: (len(item[1]), item[0])):
        if len(data) > left:
            dropped.append(name)
            continue
        kept[name], left = data, left - len(data)
    missing = {name: masks.text(why) for name, why in found.missing.items()}
    kept = {"README.txt": _readme(sorted(kept), missing, sorted(dropped)).encode(), **dict(sorted(kept.items()))}
    _archive(path, kept)
    return tuple(sorted(dropped))


def _archive(path: Path, files: Mapping[str, bytes]) -> None:
    partial = path.with_name(f".{path.name}.part")
    top = path.name.removesuffix(".tar.gz")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as handle, tarfile.open(fileobj=handle, mode="w:gz") as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(f"{top}/{name}")
                entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
                archive.addfile(entry, io.BytesIO(data))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _readme(names: list[str], missing: Mapping[str, str], dropped: list[str]) -> str:
    lines = [
        "A support bundle of pai-install.",
        "",
        "Secrets that the controller host knows are masked, and what looks like one.",
    ]
    lines.append("Read it before you give it away: logs may hold names, addresses, and what programs of yours print.")
    if missing:
        lines += ["", "Could not be asked:", *(f"  {name}: {why}" for name, why in sorted(missing.items()))]
    if dropped:
        lines += ["", "Left out, because the bundle would be too large:", *(f"  {name}" for name in dropped)]
    return "\n".join([*lines, "", "Content:", *(f"  {name}" for name in names), ""])
