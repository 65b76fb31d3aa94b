"""The userland of images below their programs: users, folders, and for some the tools of Debian packages.

Packages come through the controller host's apt sources and keys into separate folders. Nothing is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from pai_install.components.image import LayerEntry
from pai_install.components.progress import Progress
from pai_install.errors import PaiError
from pai_install.system.proc import run

# Part of every key of something made here: raise it when the same packages give another layer.
RECIPE = 1
MERGED = ("bin", "sbin", "lib", "lib64")
LEFT_OUT = ("usr/share/", "var/", "etc/alternatives/", "usr/lib/systemd/", "usr/include/")
# what the package's postinst would link through the alternatives system
IPTABLES_COMMANDS = tuple(
    f"{family}{suffix}" for family in ("iptables", "ip6tables") for suffix in ("", "-save", "-restore")
)
# busybox is a shell, too; its package leaves the name to others
BUSYBOX_COMMANDS = ("cat", "sh")


def base_nodes() -> list[LayerEntry]:
    """Returns the common content of all images: names of users and groups, and a folder for temporary files."""
    return [
        LayerEntry(
            "etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
        ),
        LayerEntry("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n"),
        LayerEntry("etc/nsswitch.conf", 0o644, b"hosts: files dns\n"),
        LayerEntry("root", 0o700),
        LayerEntry("tmp", 0o1777),
    ]


def fetch_packages(names: Sequence[str], folder: Path, progress: Progress) -> list[Path]:
    """Downloads Debian packages with all dependencies into `folder`, with signatures verified by apt. Skips patterns.

    Raises PaiError with apt's message.
    """
    names = [name for name in names if "*" not in name]
    progress(f"packages {' '.join(names)}: fetching with apt")
    own = _private_apt(folder)
    install = [*own, "--no-install-recommends", "--download-only", "-y", "install", *names]
    if not run(["apt-get", *install], check=False, env=_environment()).ok:
        # The host's lists may be old or missing. Lists in the private folder are new and change nothing on the host.
        lists = ["-o", f"Dir::State::lists={_made(folder / 'lists/partial').parent}"]
        run(["apt-get", *own, *lists, "update"], check=False, env=_environment())
        done = run(["apt-get", *lists, *install], check=False, env=_environment())
        if not done.ok:
            raise PaiError(
                f"cannot fetch {' '.join(names)} with apt-get",
                code="apt-download-failed",
                details=(done.stderr or done.stdout).strip()[-4000:],
                remedy="check the package sources of this host",
            )
    return sorted((folder / "archives").glob("*.deb"))


def _private_apt(folder: Path) -> list[str]:
    """Options by which apt believes that nothing is installed and writes only below `folder`."""
    status = folder / "status"
    _made(folder / "archives/partial")
    # With an empty status apt lists all dependencies. With the host's it would leave out what the host has.
    status.write_text("")
    options = {
        "Dir::State::status": status,
        "Dir::Cache::archives": folder / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        # The locks belong to the host's apt, which may be at work. Here apt only downloads into its own folder.
        "Debug::NoLocking": 1,
        # apt would drop its rights to the user _apt, who cannot write below this private folder.
        "APT::Sandbox::User": "root",
    }
    return ["-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}


def unpack(packages: Sequence[Path], root: Path) -> None:
    """Unpacks Debian packages over each other into `root`, without running their scripts."""
    root.mkdir(parents=True, exist_ok=True)
    for package in packages:
        run(["dpkg-deb", "--extract", package, root])


def own_nodes(names: Sequence[str], packages: Sequence[Path], folder: Path) -> list[LayerEntry]:
    """Returns the files of these packages for an image, and the shared libraries of their dependencies.

    The rest needs an installation by dpkg, because package scripts do not run here. Unpacks into `folder`.
    """
    own = [path for path in packages if any(fnmatch(path.name.partition("_")[0], name) for name in names)]
    unpack(own, folder / "own")
    unpack([path for path in packages if path not in own], folder / "others")
    libraries = [node for node in userland_nodes(folder / "others") if _is_library(node)]
    return [*libraries, *userland_nodes(folder / "own"), *base_nodes()]


def _is_library(node: LayerEntry) -> bool:
    """Whether it lies in a folder of the loader itself, not in that of some program's plugins."""
    parts = Path(node.path).parts
    return ".so" in parts[-1] and parts[:2] in (("usr", "lib"), ("usr", "lib64")) and len(parts) <= 4


def userland_nodes(root: Path) -> list[LayerEntry]:
    """The paths of an unpacked root as a layer: /usr merged, documentation and the like left out."""
    nodes = {node.path: node for node in _walk(root)}
    for name in MERGED:
        nodes[f"usr/{name}"] = LayerEntry(f"usr/{name}")
        nodes[name] = LayerEntry(name, link=f"usr/{name}")
    if "usr/sbin/xtables-nft-multi" in nodes:
        for command in IPTABLES_COMMANDS:
            nodes[f"usr/sbin/{command}"] = LayerEntry(f"usr/sbin/{command}", link="xtables-nft-multi")
    if "usr/bin/busybox" in nodes:
        for command in BUSYBOX_COMMANDS:
            nodes.setdefault(f"usr/bin/{command}", LayerEntry(f"usr/bin/{command}", link="busybox"))
    return list(nodes.values())


def _walk(root: Path) -> Iterator[LayerEntry]:
    for path in sorted(root.rglob("*")):
        relative = str(path.relative_to(root))
        if relative.split("/", maxsplit=1)[0] in MERGED:
            relative = f"usr/{relative}"
        if relative.startswith(LEFT_OUT) or (path.is_dir() and not path.is_symlink()):
            continue  # folders come back as the parents of what is in them
        if path.is_symlink():
            yield LayerEntry(relative, link=str(path.readlink()))
        elif path.is_file():
            yield LayerEntry(relative, 0o755 if path.stat().st_mode & 0o111 else 0o644, path)
