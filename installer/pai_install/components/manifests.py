"""Upstream manifests: the files of one, compared with their pinned sums, joined to one file of YAML documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pai_install.components.catalogue import Component, ManifestSpec
from pai_install.components.store import StagedManifest
from pai_install.errors import PaiError


def recipe(component: Component, version: str) -> dict[str, Any]:
    """Returns the inputs of a component's manifests, or {} without manifests, so that its key does not change."""
    if not component.manifests:
        return {}
    files = {name: spec.files for name, spec in component.manifests.items()}
    return {"manifests": files, "sums": component.versions[version].manifests}


def assemble(
    component: Component, version: str, folder: Path, fetch: Callable[[ManifestSpec, str], Mapping[str, bytes]]
) -> tuple[StagedManifest, ...]:
    """Creates every manifest of a component below `folder`. fetch: (spec, name) -> files.

    Raises PaiError if a file does not match its pin.
    """
    staged = []
    for name, spec in component.manifests.items():
        sums = component.versions[version].manifests[name]
        files = fetch(spec, name)
        target = folder / f"{name}.yaml"
        folder.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"\n---\n".join(_verified(file, files[file], sums[file]) for file in spec.files))
        staged.append(StagedManifest(name, version, target))
    return tuple(staged)


def _verified(name: str, content: bytes, sha256: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise PaiError(
            f"cannot use {name}: its digest differs from the catalogue",
            code="manifest-digest-mismatch",
            details=f"sha256 {found} instead of {sha256}",
            remedy="choose another component source",
        )
    return content
