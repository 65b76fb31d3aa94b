"""The real registry program, as a server of the test's own."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.fetch import cached, open_source
from pai_install.components.model import Selection
from tests.ports import free_port

CONFIG = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {root}}}, maintenance: {{readonly: {{enabled: {readonly}}}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@pytest.fixture(scope="session")
def program() -> Path:
    """The registry program; skips where it was not fetched yet."""
    catalogue = load_catalogue()
    whole = resolve(catalogue)
    picks = tuple(pick for pick in whole.picks if pick.component == "registry")
    (entry,) = cached(Selection(whole.kubernetes_version, "modules", picks), open_source(catalogue, "modules")).values()
    if entry is None:
        pytest.skip("the registry is not in the component cache: pai-install components fetch")
    return entry.path("registry")


@pytest.fixture
def serve(program: Path, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """serve(readonly=...): starts a registry over tmp_path/data; its address."""
    with ExitStack() as stack:

        def start(*, readonly: bool) -> str:
            port = free_port()
            config = tmp_path / f"{port}.yml"
            config.write_text(CONFIG.format(root=tmp_path / "data", port=port, readonly=str(readonly).lower()))
            server = subprocess.Popen([program, "serve", config], stderr=subprocess.DEVNULL)
            stack.callback(server.wait, 60)
            stack.callback(server.terminate)
            _wait(f"http://127.0.0.1:{port}")
            return f"http://127.0.0.1:{port}"

        yield start


def _wait(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/v2/", timeout=5).close()  # noqa: S310 - our own server
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the registry does not answer")
