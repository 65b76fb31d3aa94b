"""The programs of monitoring, from the component cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import fetch
from pai_install.components.modules import Modules
from pai_install.components.store import Store, default_cache


def _program(component: str, name: str) -> Path:
    """A program, built where it is not in the cache yet."""
    catalogue = load_catalogue()
    selection, source = resolve(catalogue, needed=[component]), Modules(catalogue)
    fetch(selection, source)
    (pick,) = selection.picks
    entry = Store(default_cache()).lookup(source.programs_key(pick), print)
    assert entry is not None
    return entry.path(name)


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Checks rules."""
    return _program("prometheus", "promtool")


@pytest.fixture(scope="session")
def prometheus(promtool: Path) -> Path:
    """Stores metrics and evaluates alerts."""
    return promtool.with_name("prometheus")


@pytest.fixture(scope="session")
def alertmanager() -> Path:
    """Sends notifications."""
    return _program("alertmanager", "alertmanager")


@pytest.fixture(scope="session")
def node_exporter() -> Path:
    """Serves the metrics of a machine."""
    return _program("node-exporter", "node_exporter")
