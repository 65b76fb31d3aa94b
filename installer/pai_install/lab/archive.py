"""The archive that a base image is made from: whether the box can reach it, and the keys by which it is checked."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.apt import AptAccess
from pai_install.lab.distribution import LabDistribution
from pai_install.system.proc import run

# fetches as apt does: with the box's proxies, authorities and passwords
_FETCH = (
    *("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=0"),
    *("-o", "Acquire::http::Timeout=15", "-o", "Acquire::https::Timeout=15", "download-file"),
)


def unreachable(access: AptAccess) -> str:
    """Returns why the controller host cannot reach the release's archive, in apt's words, or ""."""
    source = access.bootstrap
    with TemporaryDirectory() as scratch:
        return _fetch(f"{source.uri.rstrip('/')}/dists/{source.suites[0]}/InRelease", Path(scratch) / "InRelease")


def no_way(access: AptAccess, why: str) -> PaiError:
    """Returns the error of `lab up` for an unreachable archive."""
    return PaiError(
        f"cannot reach {access.distribution.name}'s archive of {access.suite}: {why}",
        code="lab-archive-unreachable",
        remedy="allow the access, or name a root file system in a tar file as the suite (docs/lab.md)",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )


def box_keyring(access: AptAccess, folder: Path) -> Path:
    """Returns a file with the keys of the archive: the host's own file, or a new file in `folder`.

    Raises PaiError if the keys cannot be downloaded or have unknown fingerprints.
    """
    own, distribution = Path(access.bootstrap.signed_by), access.distribution
    if own.exists() or not distribution.keyring_package:
        return own
    packed = folder / "keyring.deb"
    folder.mkdir(parents=True, exist_ok=True)
    why = _fetch(
        f"{next(iter(distribution.archives))}/{distribution.keyring_package}",
        packed,
        f"SHA256:{distribution.keyring_digest}",
    )
    if why:
        raise no_way(access, why)
    return known_keys(distribution, packed, folder)


def known_keys(own: LabDistribution, packed: Path, folder: Path) -> Path:
    """Returns a keyring with the known keys of a distribution's keyring package, without its other keys.

    Raises PaiError if a known key is missing.
    """
    keyring, home = folder / "keyring.gpg", folder / "gnupg"
    home.mkdir(mode=0o700)
    run(["dpkg-deb", "--extract", packed, folder / "unpacked"])
    # public keys need no agent, which would outlive us
    gpg: list[str | Path] = ["gpg", "--homedir", home, "--batch", "--quiet", "--no-autostart"]
    run([*gpg, "--import", folder / "unpacked" / own.keyring.lstrip("/")])
    missing = [name for name in own.fingerprints if not run([*gpg, "--list-keys", name], check=False).ok]
    if missing:
        raise PaiError(
            f"cannot trust {own.name}'s archive: {own.keyring_package} lacks the key {', '.join(missing)}",
            code="lab-archive-keys-missing",
            remedy="check for new keys of the distribution, and for a proxy that serves its archive to this host",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    run([*gpg, "--output", keyring, "--export", *own.fingerprints])
    return keyring


def _fetch(url: str, target: Path, *digest: str) -> str:
    done = run([*_FETCH, url, target, *digest], check=False, timeout_s=120)
    if done.ok:
        return ""
    errors = [line.removeprefix("E: ") for line in done.stderr.splitlines() if line.startswith("E: ")]
    return errors[0] if errors else f"apt-helper ends with {done.returncode}"
