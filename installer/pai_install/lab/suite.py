"""Which system a machine gets: a suite of a distribution, or a root file system packed as a tar file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.apt import read_box
from pai_install.lab.archive import unreachable
from pai_install.lab.distribution import SUITES
from pai_install.lab.image import cache_dir, ensure_image, image_path, kept_image
from pai_install.system.proc import run

# what the lab and Ansible need of a packed system, as paths below its root
_NEEDED = {
    "systemd": ("usr/lib/systemd/systemd", "lib/systemd/systemd"),
    "openssh-server": ("usr/sbin/sshd",),
    "sudo": ("usr/bin/sudo",),
    "python3": ("usr/bin/python3",),
}


def is_file(suite: str) -> bool:
    """Whether the word names a packed root file system instead of a suite."""
    return "/" in suite or ".tar" in suite


def checked_suite(suite: str) -> str:
    """`suite` itself. Raises PaiError when it is neither a suite that we know nor a file."""
    if suite in SUITES or (is_file(suite) and Path(suite).is_file()):
        return suite
    what = "there is no such file" if is_file(suite) else "not a suite"
    raise PaiError(
        f"cannot use suite {suite}: {what}",
        code="lab-suite-invalid",
        remedy=f"choose one of {', '.join(SUITES)}, or a root file system in a tar file (docs/lab.md)",
        exit_code=ExitCode.USAGE,
    )


def base_path(suite: str) -> Path:
    """Where the base image of a suite is, or will be."""
    if not is_file(suite):
        return image_path(read_box(suite=suite))
    with Path(suite).open("rb") as packed:
        digest = hashlib.file_digest(packed, "sha256").hexdigest()
    return cache_dir() / f"base-file-{digest[:12]}"


def ensure_base(suite: str, notify: Callable[[str], None]) -> Path:
    """Folder of the base image of a suite, made when missing. Raises PaiError when that fails."""
    if not is_file(suite):
        return ensure_image(read_box(suite=suite), notify)
    return kept_image(base_path(suite), lambda image: _unpack(Path(suite), image), lambda: notify(f"unpacking {suite}"))


def is_of(suite: str, image: Path) -> bool:
    """Whether an image is of that suite, whatever its recipe was at the time."""
    return image.name == base_path(suite).name if is_file(suite) else image.name.startswith(f"base-{suite}-")


def no_archive(suite: str) -> str:
    """Returns why the controller host cannot reach the archive of a suite, in apt's words, or ""."""
    return unreachable(read_box(suite=suite))


def missing_in(root: Path) -> tuple[str, ...]:
    """Packages that a packed system lacks."""
    return tuple(package for package, paths in _NEEDED.items() if not _any_in(root, paths))


def _any_in(root: Path, paths: Iterable[str]) -> bool:
    return any((root / path).is_symlink() or (root / path).exists() for path in paths)


def _unpack(packed: Path, image: Path) -> None:
    partial = image.with_name(f"{image.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    # This host has other numbers for users, and extended attributes hold capabilities of programs.
    run(["tar", "--extract", "--numeric-owner", "--xattrs", "--file", packed, "--directory", partial])
    missing = missing_in(partial)
    if missing:
        raise PaiError(
            f"cannot start {packed}: it lacks {', '.join(missing)}",
            code="lab-suite-without-systemd",
            remedy="install these packages before you pack the file (docs/lab.md)",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    for name in ("etc/machine-id", "etc/hostname", "etc/resolv.conf", *_host_keys(partial)):
        (partial / name).unlink(missing_ok=True)  # every machine has its own
    partial.chmod(0o755)
    partial.rename(image)


def _host_keys(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in (root / "etc/ssh").glob("ssh_host_*")]
