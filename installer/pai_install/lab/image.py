"""The base images of the machines: a distribution's by mmdebstrap, each kept as a folder named after its recipe."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from pai_install.errors import PaiError
from pai_install.lab.apt import AptAccess
from pai_install.lab.archive import box_keyring, no_way, unreachable
from pai_install.lab.distribution import distribution_of
from pai_install.lab.names import LABS_DIR
from pai_install.system.files import write_atomic
from pai_install.system.proc import run

RECIPE_VERSION = 1
# Machines are thrown away: package descriptions in other languages are not worth their download.
LAB_OPTIONS = 'Acquire::Languages "none";\n'
INCLUDED = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "kmod", "procps", "ca-certificates", "gpg"),
    *("python3", "python3-apt", "iproute2", "iptables", "nftables", "conntrack", "ethtool", "socat", "iputils-ping"),
)
# Downloaded once into the image, not installed: installing them in a machine is quick.
PREFETCHED = ("docker.io", "docker-cli", "containerd", "runc", "chrony", "haproxy", "xz-utils")


def cache_dir() -> Path:
    """The user's cache folder of the lab."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "pai-install" / "lab"


def prefetched(suite: str) -> tuple[str, ...]:
    """Packages that are downloaded into the image of a suite."""
    lacking = distribution_of(suite).lacking.get(suite, frozenset())
    return tuple(name for name in PREFETCHED if name not in lacking)


def included(suite: str) -> tuple[str, ...]:
    """Packages that are installed in the image of a suite."""
    return (*INCLUDED, *distribution_of(suite).included)


def recipe_hash(access: AptAccess) -> str:
    """12 hex digits that change with anything that shapes the image."""
    recipe = {
        "version": RECIPE_VERSION,
        "suite": access.suite,
        "packages": [included(access.suite), prefetched(access.suite)],
        "sources": access.sources_file(),
        "options": LAB_OPTIONS + access.options,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in access.files.items()},
        "certificates": {name: hashlib.sha256(pem).hexdigest() for name, pem in access.certificates.items()},
    }
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]


def image_path(access: AptAccess) -> Path:
    """Where the image for `access` is, or will be."""
    return cache_dir() / f"base-{access.suite}-{recipe_hash(access)}"


def ensure_image(access: AptAccess, notify: Callable[[str], None]) -> Path:
    """Folder of the image, built when missing (40 s to 2 min). Raises PaiError when that fails."""
    what = f"the {access.distribution.name} {access.suite} base image (once; about a minute)"
    return kept_image(image_path(access), lambda image: _build(access, image), lambda: notify(f"building {what}"))


def kept_image(image: Path, build: Callable[[Path], None], announce: Callable[[], None]) -> Path:
    """Returns `image`, and builds it if it is missing. Then deletes unused images of the same suite."""
    if image.is_dir():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(image.parent / ".lock"):
        if not image.is_dir():
            announce()
            build(image)
            for old in unused_images(image, image.parent, _links_in_use()):
                shutil.rmtree(old)
    return image


def unused_images(current: Path, folder: Path, in_use: Iterable[Path]) -> tuple[Path, ...]:
    """Images of its suite, and half-built ones, that no machine stands on and that are not the current one."""
    kept = {current, *in_use}
    suite = current.name.rpartition("-")[0]
    return tuple(path for path in sorted(folder.glob(f"{suite}-*")) if path not in kept)


def _links_in_use() -> list[Path]:
    return [*(link.readlink() for link in LABS_DIR.glob("*/*/base")), *mounted_images(Path("/proc"))]


def mounted_images(proc: Path) -> list[Path]:
    """Lower folders of overlays in every mount namespace, because labs of several namespaces share one cache."""
    tables: dict[Path, str] = {}
    for process in proc.glob("[0-9]*"):
        # a process may end meanwhile
        with suppress(OSError):
            namespace = (process / "ns/mnt").readlink()
            if namespace not in tables:
                tables[namespace] = (process / "mounts").read_text()
    return [Path(lower) for table in tables.values() for lower in re.findall(r"lowerdir=([^,:\s]+)", table)]


def _build(access: AptAccess, image: Path) -> None:
    partial = image.with_name(f"{image.name}.partial")
    settings = image.with_name(f"{image.name}.settings")
    for folder in (partial, settings):
        shutil.rmtree(folder, ignore_errors=True)
    partial.mkdir(parents=True)
    _write_settings(access, settings)
    try:
        keyring = box_keyring(access, settings / "keys")
        run(mmdebstrap_command(access, keyring, settings, partial), timeout_s=1800)
    except PaiError as error:
        if why := unreachable(access):
            raise no_way(access, why) from error
        raise
    finally:
        shutil.rmtree(settings, ignore_errors=True)
    partial.chmod(0o755)
    # A killed build leaves a folder of another name, so that no half image is ever used.
    partial.rename(image)


def mmdebstrap_command(access: AptAccess, keyring: Path, settings: Path, target: Path) -> list[str]:
    """The command line that builds the image into `target`, checked by the keys in `keyring`.

    `settings` is a folder tree that is copied over the image before packages are prefetched.
    """
    prefetch = f"apt-get -q -y --no-install-recommends --download-only install {' '.join(prefetched(access.suite))}"
    hooks = [
        f'cp -a {settings}/tree/. "$1"/',
        'chroot "$1" update-ca-certificates',
        'chroot "$1" apt-get clean',
        'chroot "$1" apt-get -q update',
        f'chroot "$1" {prefetch}',
        # every machine has keys and an id of its own
        'rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf',
        'rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap',  # 90lab says the same, and guards passwords
    ]
    return [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--format=directory",
        f"--include={','.join(included(access.suite))}",
        f"--aptopt={settings}/options.conf",
        f"--keyring={keyring}",
        # The cleanup of apt would delete the prefetched packages.
        "--skip=cleanup/apt,check/empty",
        *(f"--customize-hook={hook}" for hook in hooks),
        access.suite,
        str(target),
        access.bootstrap.line(keyring),
    ]


def _write_settings(access: AptAccess, folder: Path) -> None:
    write_atomic(folder / "options.conf", access.options or "# none\n", mode=0o600)
    tree = folder / "tree"
    apt = tree / "etc/apt"
    write_atomic(apt / "sources.list", "")
    write_atomic(apt / f"sources.list.d/{access.distribution.word}.sources", access.sources_file())
    # a proxy address may carry a password
    write_atomic(apt / "apt.conf.d/90lab", LAB_OPTIONS + access.options, mode=0o600 if "@" in access.options else 0o644)
    for name, content in access.files.items():
        is_secret = "auth.conf" in name
        write_atomic(tree / name.lstrip("/"), content, mode=0o600 if is_secret else 0o644)
    for name, pem in access.certificates.items():
        write_atomic(tree / "usr/local/share/ca-certificates" / name, pem)
    for made in (path for path in [tree, *tree.rglob("*")] if path.is_dir()):
        made.chmod(0o755)
