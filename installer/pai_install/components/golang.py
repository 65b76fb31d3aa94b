"""The Go client: found on the controller host or fetched through the module proxy, and the environment of builds."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pai_install.components.catalogue import GoToolchain
from pai_install.components.download import blocks, open_url
from pai_install.components.model import Architecture
from pai_install.components.progress import Progress
from pai_install.errors import PaiError
from pai_install.system.proc import run

DEFAULT_PROXY = "https://proxy.golang.org"


def go_command(wanted: GoToolchain, architecture: Architecture, folder: Path, progress: Progress) -> Path:
    """A go that is new enough: the one on PATH, or else the pinned toolchain, kept below `folder`.

    Raises PaiError when neither is available.
    """
    found = shutil.which("go")
    if found and go_version(Path(found)) >= _numbers(wanted.version):
        return Path(found)
    kept = folder / f"go{wanted.version}" / "bin/go"
    if not kept.exists():
        progress(f"go {wanted.version}: fetching the toolchain (the controller host has none this new)")
        fetch_toolchain(wanted, architecture, kept.parent.parent)
    return kept


def go_version(command: Path) -> tuple[int, ...]:
    """Returns the version of a go command as numbers, such as (1, 26, 8), or () if unknown."""
    # A go.mod nearby, or the user's GOTOOLCHAIN, could make go download another toolchain.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    done = run([command, "env", "GOVERSION"], env=environment, check=False, cwd=Path("/"))
    return _numbers(done.stdout.strip().removeprefix("go"))


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "1.26.8" and "1.26rc1" give (1, 26, 8) and (1, 26)."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def proxies(environment: Mapping[str, str]) -> list[str]:
    """Returns the module proxies in GOPROXY without trailing slashes, by default the public one."""
    names = re.split(r"[,|]", environment.get("GOPROXY") or DEFAULT_PROXY)
    return [name.strip().rstrip("/") for name in names if "://" in name]


def fetch_toolchain(wanted: GoToolchain, architecture: Architecture, target: Path) -> None:
    """Unpacks the pinned Go toolchain into `target`. Raises PaiError if its sum differs."""
    if architecture not in wanted.toolchain:
        raise PaiError(
            f"cannot fetch Go {wanted.version}: there is no checksum for {architecture}",
            code="go-checksum-not-pinned",
            remedy=f"install Go {wanted.version} or newer on this host",
        )
    module = f"golang.org/toolchain@v0.0.1-go{wanted.version}.linux-{architecture}"
    target.parent.mkdir(parents=True, exist_ok=True)
    archive = target.with_name(f"{target.name}.zip")
    try:
        _download_zip(module, archive)
        with zipfile.ZipFile(archive) as content:
            seen = module_sum(content)
            if seen != wanted.toolchain[architecture]:
                raise PaiError(
                    f"cannot use the Go toolchain of the module proxy: its sum is {seen}, expected "
                    f"{wanted.toolchain[architecture]}",
                    code="go-checksum-mismatch",
                    remedy="check GOPROXY",
                )
            _unpack(content, f"{module}/", target)
    finally:
        archive.unlink(missing_ok=True)


def _download_zip(module: str, target: Path) -> None:
    name, version = module.split("@")
    choices = proxies(os.environ)
    if not choices:
        raise PaiError(
            "cannot fetch Go: GOPROXY names no module proxy",
            code="go-proxy-missing",
            remedy="set GOPROXY, or install Go on this host",
        )
    failures: list[str] = []
    for proxy in choices:
        try:
            url = f"{proxy}/{name}/@v/{version}.zip"
            with open_url(url, schemes=("https", "http", "file")) as response, target.open("wb") as output:
                output.writelines(blocks(response, url))
        except PaiError as error:
            failures.append(error.message)
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"{proxy}: the download broke off: {error}")
        else:
            return
    raise PaiError(
        f"cannot fetch the Go toolchain {version}",
        code="go-toolchain-download-failed",
        details="\n".join(failures),
        remedy="check GOPROXY, or install Go on this host",
    )


def module_sum(archive: zipfile.ZipFile) -> str:
    """The checksum database's value of a module archive ("h1:..."): a hash over the hashes of its files."""
    lines = []
    for name in sorted(archive.namelist()):
        with archive.open(name) as handle:
            lines.append(f"{hashlib.file_digest(handle, 'sha256').hexdigest()}  {name}\n")  # type: ignore[arg-type]
    digest = hashlib.sha256("".join(lines).encode()).digest()
    return f"h1:{base64.b64encode(digest).decode()}"


def _unpack(archive: zipfile.ZipFile, prefix: str, target: Path) -> None:
    """Unpacks the files below `prefix` into `target`. Programs become executable (module archives have no modes)."""
    staged = target.with_name(f"{target.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    for name in archive.namelist():
        # go.mod files inside a module archive are stored as _go.mod
        path = staged / re.sub(r"(^|/)_go\.mod$", r"\1go.mod", name.removeprefix(prefix))
        if not name.startswith(prefix) or ".." in path.parts:
            raise PaiError(
                f"cannot unpack the Go toolchain: it contains the unexpected path {name}", code="go-archive-path-unsafe"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as source, path.open("wb") as output:
            shutil.copyfileobj(source, output)
        if "/bin/" in name or "/pkg/tool/" in name:
            path.chmod(0o755)
    shutil.rmtree(target, ignore_errors=True)
    staged.rename(target)


def build_environment(scratch: Path, *, cgo: bool) -> dict[str, str]:
    """The environment of one build: caches of its own below `scratch`, no toolchain switching.

    GOPROXY, GOSUMDB, GOPRIVATE, GOFLAGS and the like stay as the admin has set them.
    """
    folders = {"GOMODCACHE": scratch / "mod", "GOCACHE": scratch / "cache", "GOTMPDIR": scratch / "tmp"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        **{name: str(folder) for name, folder in folders.items()},
        # The build uses the pinned toolchain and no workspace of the user.
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "1" if cgo else "0",
    }
