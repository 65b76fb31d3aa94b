"""The interface of a source of components, with implementations upstream.py, modules.py, and bundle.py."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pai_install.components.model import Architecture, PinnedComponent, SourceName
from pai_install.components.progress import Progress
from pai_install.components.store import Contents, Store
from pai_install.errors import PaiError


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The workplace of a source: the cache, a scratch folder that is emptied afterwards, progress."""

    store: Store
    scratch: Path
    progress: Progress


class Source(Protocol):
    """Yields the files and images of one component at one version."""

    @property
    def name(self) -> SourceName:
        """The word for it in the site's configuration."""
        ...

    def key(self, pick: PinnedComponent) -> str:
        """Names the result in the cache: changes whenever the result would be made differently."""
        ...

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        """Returns file -> its sha256 in the catalogue, only for files that are installed as published."""
        ...

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """Debian packages the controller host needs to make it."""
        ...

    def disk_mb(self, pick: PinnedComponent) -> int:
        """Free disk needed while making it."""
        ...

    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> AbstractContextManager[None]:
        """Downloads content for `produce` beside the block, if the source can do it. Its failure has no consequence."""
        ...

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Produces it in the empty folder `staged`. Raises PaiError if it is unavailable or does not match its pin."""
        ...


def recipe_key(name: str, version: str, recipe: Mapping[str, Any]) -> str:
    """NAME-VERSION-HASH, the hash over everything that decides the result."""
    text = json.dumps(recipe, sort_keys=True, default=str)
    return f"{name}-{version}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def box_architecture() -> Architecture:
    """Returns the controller host's architecture in Go's and Debian's terms. Raises PaiError if it is unsupported."""
    names: dict[str, Architecture] = {"x86_64": "amd64", "aarch64": "arm64"}
    machine = platform.machine()
    if machine not in names:
        raise PaiError(
            f"cannot build components on {machine}: only x86_64 and aarch64 are supported",
            code="controller-host-architecture",
        )
    return names[machine]
