"""A storage whose server is not there stops the run, with its place in the site's files."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import ModuleFailedError, Run

PLACES = {"127.0.0.1:/gone": "services-configuration.yaml:4:5"}


@pytest.fixture
def gone() -> Iterator[dict[str, Any]]:
    """An export at a port where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield {"server": "127.0.0.1", "path": "/gone", "port": bound.getsockname()[1]}


def test_a_server_that_is_not_there_is_told_with_its_place(gone: dict[str, Any], run_module: Run) -> None:
    with pytest.raises(ModuleFailedError) as caught:
        run_module("pai_nfs_check", exports=[gone], places=PLACES)
    said = str(caught.value)
    assert said.startswith(
        "storages cannot be mounted: services-configuration.yaml:4:5: 127.0.0.1:/gone: the server does not"
    )


def test_a_storage_that_was_asked_for_before_stops_nothing(gone: dict[str, Any], run_module: Run) -> None:
    result = run_module("pai_nfs_check", exports=[gone], known=[gone])
    assert (result["changed"], result["asked"]) == (False, {})


def test_another_folder_of_the_same_server_is_asked_for(gone: dict[str, Any], run_module: Run) -> None:
    with pytest.raises(ModuleFailedError, match="/other"):
        run_module("pai_nfs_check", exports=[{**gone, "path": "/other"}], known=[gone])
