"""The image of the console, of Debian packages and wheels as they are served. Its Python runs without root."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from email.parser import HeaderParser
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from pai_install.components.assembled import install_wheels
from pai_install.components.catalogue import PythonBuild, load_catalogue
from pai_install.components.fetch import fetch, open_source
from pai_install.components.model import Architecture, ImageArtifact, PinnedComponent, Selection
from pai_install.components.store import default_cache
from tests.suites import sampled

BUILD = cast("PythonBuild", load_catalogue().components["console"].build)
MOST_BYTES = 25_000_000
MACHINES: tuple[Architecture, ...] = ("amd64", "arm64")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.fixture(scope="module")
def image() -> ImageArtifact:
    source = open_source(load_catalogue(), "upstream")
    found = fetch(Selection("1.36.3", "upstream", (PinnedComponent("console", "own"),)), source, default_cache())
    return found.image("pai-console")


@pytest.fixture(scope="module")
def layers(image: ImageArtifact) -> list[Path]:
    blobs = image.layout / "blobs/sha256"
    manifest = json.loads((blobs / image.manifest_digest.removeprefix("sha256:")).read_text())
    return [blobs / layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]


@pytest.fixture(scope="module")
def root(layers: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root starts a program of the image in its own root folder")
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    for layer in layers:
        tar = ["tar", "--extract", "--gzip", "--xattrs", "--xattrs-include=*", f"--file={layer}"]
        subprocess.run([*tar, f"--directory={folder}"], check=True)
    return folder


def python(root: Path, program: str) -> str:
    words = ["chroot", "--userspec=65532:65532", str(root), "/usr/bin/python3", "-c", program]
    environment = {"PYTHONPATH": "/opt/pai-install", "PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_size_is_within_the_limit(layers: list[Path]) -> None:
    assert sum(layer.stat().st_size for layer in layers) < MOST_BYTES


def test_the_library_and_its_packages_start_as_a_plain_user(root: Path) -> None:
    words = "import starlette, uvicorn, argon2, joserfc, yaml, ssl; import pai_install.jobs.read, pai_install.profile"
    assert python(root, f"{words}; print(ssl.OPENSSL_VERSION)").startswith("OpenSSL 3")


def test_the_program_of_the_image_has_all_that_it_imports(root: Path) -> None:
    found = python(root, "import pai_install.console.__main__, sys; print(len(sys.modules))")
    assert int(found) > 100


def test_a_plain_user_may_bind_a_low_port(root: Path) -> None:
    assert python(root, "import socket; socket.socket().bind(('127.0.0.1', 1)); print('bound')") == "bound\n"


@pytest.mark.parametrize(("version", "architecture"), sampled([*product(VERSIONS, MACHINES)], 2))
def test_every_wheel_is_served(version: str, architecture: Architecture, tmp_path: Path) -> None:
    install_wheels(BUILD.lock_file, version, architecture, tmp_path)
    tag = f"cpython-{version.replace('.', '')}-{ {'amd64': 'x86_64', 'arm64': 'aarch64'}[architecture] }"
    assert list(tmp_path.glob(f"pydantic_core/*{tag}*.so"))
    assert {path.name.partition("-")[0].lower().replace("_", "-").replace(".", "-") for path in tmp_path.glob(
        "*.dist-info")} == BUILD.licences.keys()  # fmt: skip


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels of one architecture say the same")
def test_licences_are_those_that_the_wheels_name(tmp_path: Path) -> None:
    install_wheels(BUILD.lock_file, "3.11", "amd64", tmp_path)
    for path in tmp_path.glob("*.dist-info/METADATA"):
        metadata = HeaderParser().parsestr(path.read_text())
        name = metadata["Name"].lower().replace("_", "-").replace(".", "-")
        if expression := metadata["License-Expression"]:
            assert BUILD.licences[name] == expression, name
