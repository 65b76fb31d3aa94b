"""A source before another one: images of pai-install itself, which no one publishes and every source makes alike."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pai_install
from pai_install.components import userland
from pai_install.components.catalogue import Catalogue, PythonBuild
from pai_install.components.image import ImageConfig, Layer, LayerEntry, place, read_layer, write_image, write_layer
from pai_install.components.model import Architecture, PinnedComponent, SourceName
from pai_install.components.source import BuildContext, Source, box_architecture, recipe_key
from pai_install.components.store import Contents, StagedFile, StagedImage
from pai_install.errors import PaiError
from pai_install.system.proc import run

# Part of every key: raise it when the same packages, wheels, and library give another image.
RECIPE = 1
LIBRARY = Path(pai_install.__file__).parent
_HOME = "opt/pai-install"
_ENVIRONMENT = (f"PYTHONPATH=/{_HOME}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONSAFEPATH=1")
_MACHINES: Mapping[Architecture, str] = {"amd64": "x86_64", "arm64": "aarch64"}
# of Debian 12 and Ubuntu 22.04, the oldest userlands that have a Python for the library
_PLATFORMS = ("manylinux_2_35", "manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
# what pip leaves beside packages
_NOTES = ("RECORD", "INSTALLER", "REQUESTED")
_CACHES = "__pycache__"
# what a cluster pulls once is worth some seconds
_LEVEL = 6


class Assembled:
    """Puts together the images with a recipe of the kind python, and leaves everything else to the other source."""

    def __init__(
        self, catalogue: Catalogue, other: Source, architecture: Architecture | None = None, library: Path = LIBRARY
    ) -> None:
        self._catalogue, self._other, self._library = catalogue, other, library
        self._architecture = architecture or box_architecture()

    @property
    def name(self) -> SourceName:
        """That of the other source."""
        return self._other.name

    def key(self, pick: PinnedComponent) -> str:
        """Over packages, lock, and every file of the library."""
        build = self._recipe(pick)
        if build is None:
            return self._other.key(pick)
        recipe = {
            "foundation": self._foundation_key(build),
            "library": _digest_of(self._library, build.without),
            "module": build.module,
            "user": build.user,
        }
        return recipe_key(pick.component, pick.version, recipe)

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        """Returns {} for an image, because pip compares its wheels with their sums."""
        return {} if self._recipe(pick) else self._other.pinned(pick)

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """apt and dpkg, and pip where the Python of pai-install has none."""
        if self._recipe(pick) is None:
            return self._other.debian_packages(pick)
        return ("apt", "dpkg") if _has_pip() else ("apt", "dpkg", "python3-pip")

    def disk_mb(self, pick: PinnedComponent) -> int:
        """As measured for an image."""
        build = self._recipe(pick)
        return build.disk_mb if build else self._other.disk_mb(pick)

    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> AbstractContextManager[None]:
        """As the other source does it."""
        return self._other.prefetch(pick, context) if self._recipe(pick) is None else nullcontext()

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Puts the library above the foundation. A new library leaves the layers below it as they are."""
        build = self._recipe(pick)
        if build is None:
            return self._other.produce(pick, staged, context)
        context.progress(f"{build.image}:{pick.version}: assembling the image")
        below = self._foundation(build, context)
        library = write_layer(library_nodes(self._library, build.without), context.scratch / "library", _LEVEL)
        layout = staged / "images" / build.image
        config = ImageConfig(("/usr/bin/python3", "-m", build.module), build.user, _ENVIRONMENT)
        digest = write_image(layout, [*below, library], config, pick.version, self._architecture)
        return Contents(images=(StagedImage(build.image, pick.version, digest, layout),))

    def _recipe(self, pick: PinnedComponent) -> PythonBuild | None:
        build = self._catalogue.components[pick.component].build
        return build if isinstance(build, PythonBuild) else None

    def _foundation_key(self, build: PythonBuild) -> str:
        """Over the names of the packages, whose versions are those of the day, and the lock of the wheels."""
        lock = hashlib.sha256(build.lock_file.read_bytes()).hexdigest()
        chosen = {"packages": build.packages, "left_out": build.left_out}
        recipe = {"recipe": [RECIPE, userland.RECIPE], **chosen, "lock": lock}
        return recipe_key(f"foundation-{build.image}", str(RECIPE), {**recipe, "on": self._architecture})

    def _foundation(self, build: PythonBuild, context: BuildContext) -> tuple[Layer, ...]:
        """The layers of Python and of the wheels, from the cache where they are in it."""
        key = self._foundation_key(build)
        known = context.store.lookup(key, context.progress)
        if known is None:
            folder = context.scratch / "foundation"
            python = self._python(build, folder / "python", context)
            wheels = self._wheels(build, python_version(python), folder / "wheels", context)
            with context.store.staging(key) as staged:
                files = [
                    _staged(write_layer(nodes, folder, _LEVEL), staged, name)
                    for name, nodes in (("python", python), ("wheels", wheels))
                ]
                known = context.store.publish(key, staged, Contents(tuple(files)))
            shutil.rmtree(folder)
        return tuple(read_layer(known.path(name)) for name in ("python", "wheels"))

    def _python(self, build: PythonBuild, folder: Path, context: BuildContext) -> list[LayerEntry]:
        packages = userland.fetch_packages(build.packages, folder, context.progress)
        nodes = userland.own_nodes(build.packages, packages, folder)
        return [_with_low_ports(node) for node in nodes if not _matches(Path(node.path), build.left_out)]

    def _wheels(self, build: PythonBuild, version: str, folder: Path, context: BuildContext) -> list[LayerEntry]:
        context.progress(f"wheels for Python {version}: fetching with pip")
        install_wheels(build.lock_file, version, self._architecture, folder)
        return list(_nodes(folder, _HOME, ("bin",)))


def install_wheels(lock: Path, version: str, architecture: Architecture, folder: Path) -> None:
    """Unpacks the locked wheels of a Python version and an architecture. Raises PaiError with pip's message."""
    platforms = [word for name in _PLATFORMS for word in ("--platform", f"{name}_{_MACHINES[architecture]}")]
    done = run(
        [
            *([sys.executable, "-m", "pip"] if _has_pip() else ["pip3"]),
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--no-compile",
            # The lock has every package with its sum. Wheels alone, because a source package runs code of its own.
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
            f"--python-version={version}",
            "--implementation=cp",
            *platforms,
            "--target",
            folder,
            "--requirement",
            lock,
        ],
        check=False,
    )
    if not done.ok:
        raise PaiError(
            f"cannot fetch the Python packages of {lock.name} for Python {version}: pip failed",
            code="pip-install-failed",
            details=(done.stderr or done.stdout).strip()[-4000:],
            remedy="check the package index in pip's settings (pip config list) on the controller host",
        )


def python_version(nodes: list[LayerEntry]) -> str:
    """The version of Python in a layer, such as 3.11. Raises PaiError for one that the library does not run on."""
    found = [node.path.removeprefix("usr/bin/python") for node in nodes if _is_python(node)]
    version = next(iter(found), "")
    if version not in {"3.11", "3.12", "3.13", "3.14"}:
        raise PaiError(
            f"cannot assemble an image of pai-install: this host has packages for Python {version or '(none)'}",
            code="python-not-supported",
            remedy="use a controller host with Debian 12, Ubuntu 24.04, or newer, or a bundle that was made there",
        )
    return version


def library_nodes(library: Path, without: tuple[str, ...]) -> list[LayerEntry]:
    """The files of pai-install for an image, without some of its folders."""
    return list(_nodes(library, f"{_HOME}/{library.name}", without))


@cache
def _digest_of(library: Path, without: tuple[str, ...]) -> str:
    found = hashlib.sha256()
    for node in library_nodes(library, without):
        assert isinstance(node.content, Path)  # noqa: S101 - it has files alone
        found.update(f"{node.path}\0{hashlib.sha256(node.content.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def _nodes(folder: Path, place_: str, without: Collection[str]) -> Iterator[LayerEntry]:
    """The files below a folder. without: paths below it that are left out."""
    gone = [folder / path for path in without]
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        left_out = path.name in _NOTES or _CACHES in relative.parts or any(map(path.is_relative_to, gone))
        if path.is_file() and not left_out:
            yield LayerEntry(f"{place_}/{relative}", 0o755 if path.suffix == ".so" else 0o644, path)


def _matches(path: Path, patterns: Collection[str]) -> bool:
    """Whether the name of a file, or of a folder above it, fits a pattern."""
    return any(fnmatch(part, pattern) for part in path.parts for pattern in patterns)


def _is_python(node: LayerEntry) -> bool:
    return not node.link and node.path.startswith("usr/bin/python3.")


def _with_low_ports(node: LayerEntry) -> LayerEntry:
    """Python itself may bind the ports of HTTP, also for a user that is not root."""
    return LayerEntry(node.path, node.mode, node.content, low_ports=True) if _is_python(node) else node


def _staged(layer: Layer, staged: Path, name: str) -> StagedFile:
    target = staged / f"{name}.tar.gz"
    place(layer.path, target)
    return StagedFile(name, str(RECIPE), "tar.gz", target)


def _has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None
