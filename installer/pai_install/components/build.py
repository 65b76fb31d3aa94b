"""Turns the sources of one component into programs: by the Go client, a C compiler, or out of a Debian package."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pai_install.components.catalogue import CBuild, DebBuild, GoBuild, GoToolchain, ManifestSpec
from pai_install.components.golang import build_environment, go_command
from pai_install.components.progress import Progress
from pai_install.components.source import BuildContext, box_architecture
from pai_install.components.userland import fetch_packages, unpack
from pai_install.errors import PaiError
from pai_install.system.proc import beside, run, stream

STEP = 100  # tell after that many compiled packages


def fill(template: str, version: str) -> str:
    """Puts a version into a template: {version}, {major}, {minor}."""
    major, minor, *_ = [*version.split("."), "", ""]
    return template.format(version=version, major=major, minor=minor)


class _Count:
    """Turns the go client's list of compiled packages into a progress line now and then."""

    def __init__(self, label: str, progress: Progress) -> None:
        self._label, self._progress, self._seen = label, progress, 0

    def __call__(self, line: str) -> None:
        if line.startswith("go: downloading"):
            return
        self._seen += 1
        if self._seen % STEP == 0:
            self._progress(f"{self._label}: {self._seen} packages compiled")


def build_go(
    build: GoBuild, version: str, wrapper: Path, toolchain: GoToolchain, context: BuildContext, out: Path
) -> None:
    """Builds the programs of a wrapper module into `out`. Its go.sum pins all modules.

    Raises PaiError with the Go client's message.
    """
    label = wrapper.name
    go = go_command(toolchain, box_architecture(), context.store.root / "toolchains", context.progress)
    module = _copy(wrapper, context.scratch)
    context.progress(f"{label}: building {', '.join(_program_names(build))}")
    stream(
        [go, *go_arguments(build, version, out)],
        _Count(label, context.progress),
        cwd=module,
        env=build_environment(context.scratch, cgo=build.cgo),
    )
    for built, wanted in build.rename.items():
        (out / built).rename(out / wanted)


def go_arguments(build: GoBuild, version: str, out: Path) -> list[str]:
    """The words after `go`: reproducible paths, no network beyond modules in go.sum, stamps, static if asked."""
    external = [*(["-static"] if build.static else []), *build.linker]
    linker = ["-s", "-w", *(f"-X={name}={fill(value, version)}" for name, value in build.stamps.items())]
    if external:
        linker.append(f"'-extldflags={' '.join(external)}'")  # the Go client wants whole words in quotes
    flags = ["-v", "-trimpath", "-mod=readonly", "-modcacherw", "-buildvcs=false", f"-ldflags={' '.join(linker)}"]
    return ["build", *flags, *_tags(build), f"-o={out}/", *build.packages]


def _tags(build: GoBuild) -> list[str]:
    return [f"-tags={','.join(build.tags)}"] if build.tags else []


@contextmanager
def downloads(build: GoBuild, wrapper: Path, toolchain: GoToolchain, context: BuildContext) -> Iterator[Path]:
    """Downloads the modules of a build beside a block. Yields the module cache, which the end of the block completes.

    The Go client downloads exactly the modules that its list of all packages needs. If it fails, `build_go` says why.
    """
    go = go_command(toolchain, box_architecture(), context.store.root / "toolchains", context.progress)
    module = _copy(wrapper, context.scratch)
    environment = build_environment(context.scratch, cgo=build.cgo)
    arguments = ["list", "-deps", "-mod=readonly", "-modcacherw", *_tags(build), *build.packages]
    with beside([go, *arguments], cwd=module, env=environment):
        yield Path(environment["GOMODCACHE"])


def _program_names(build: GoBuild) -> list[str]:
    names = [_last_folder(package) for package in build.packages]
    return [build.rename.get(name, name) for name in names]


def _last_folder(package: str) -> str:
    """The name the Go client gives a program: the last folder that is not a major version."""
    *_, parent, last = package.split("/")
    return parent if last.startswith("v") and last[1:].isdigit() else last


def _copy(wrapper: Path, scratch: Path) -> Path:
    module = scratch / "module"
    module.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copy(wrapper / name, module / name)
    return module


def build_c(
    build: CBuild, version: str, wrapper: Path, toolchain: GoToolchain, context: BuildContext, out: Path
) -> None:
    """Compiles one C program from a Go module, which is verified as any module."""
    folder = _module_folder(build.module, wrapper, toolchain, context)
    sources = [folder / source for source in build.sources]
    flags = [fill(flag, version) for flag in build.flags]
    run(["gcc", *flags, "-s", "-o", out / build.program, *sources])


def module_files(
    spec: ManifestSpec, wrapper: Path, toolchain: GoToolchain, context: BuildContext
) -> Mapping[str, bytes]:
    """The files of a manifest out of the archive of its Go module, which is verified as any module is."""
    folder = _module_folder(spec.module, wrapper, toolchain, context)
    return {name: (folder / name).read_bytes() for name in spec.files}


def _module_folder(name: str, wrapper: Path, toolchain: GoToolchain, context: BuildContext) -> Path:
    go = go_command(toolchain, box_architecture(), context.store.root / "toolchains", context.progress)
    module = _copy(wrapper, context.scratch)
    environment = build_environment(context.scratch, cgo=False)
    # Go makes its module cache read-only. Without this, the scratch folder could not be deleted.
    done = run([go, "mod", "download", "-modcacherw", "-json", name], cwd=module, env=environment)
    return Path(json.loads(done.stdout)["Dir"])


def take_deb(build: DebBuild, context: BuildContext, out: Path) -> None:
    """Extracts one program from its Debian package or from a dependency of the package."""
    folder = context.scratch / "deb"
    packages = fetch_packages([build.package], folder, context.progress)
    own = [path for path in packages if path.name.startswith(f"{build.package}_")]
    others = [path for path in packages if path not in own]
    found = _member(own, folder / "own", build.member) or _member(others, folder / "others", build.member)
    if found is None:
        raise PaiError(f"cannot find {build.member} in the Debian package {build.package}", code="deb-member-missing")
    shutil.copy2(found, out / build.program)


def _member(packages: Sequence[Path], root: Path, pattern: str) -> Path | None:
    """The first file of that name or pattern in the packages, in / or /usr."""
    if packages:
        unpack(packages, root)
    found = [path for place in (root, root / "usr") if place.is_dir() for path in sorted(place.glob(pattern))]
    return next((path for path in found if path.is_file() and not path.is_symlink()), None)
