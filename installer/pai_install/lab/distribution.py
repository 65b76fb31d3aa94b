"""The distributions that machines of the lab can have. Everything that tells one from another is data here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LabDistribution:
    """One distribution and its releases.

    word: lower-case name, and end of its archives' addresses.
    archives: address -> used pockets (a pocket is the suffix of the suite's name), for a host without sources of the
    distribution.
    keyring: path of the archive keys on machines and hosts of the distribution.
    keyring_package: package of this file, as a path below the first archive. keyring_digest: its sha256, checked before
    unpacking. fingerprints: its trusted keys. All are empty if `up` installs the package on the host.
    included: packages that its images need in addition to the common ones.
    lacking: suite -> packages of the lab that the suite does not have.
    """

    name: str
    word: str
    suites: tuple[str, ...]
    archives: Mapping[str, tuple[str, ...]]
    components: str
    keyring: str
    keyring_package: str = ""
    keyring_digest: str = ""
    fingerprints: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    lacking: Mapping[str, frozenset[str]] = field(default_factory=dict)


POCKETS = ("", "-updates", "-security")
# Docker's client is a package of its own since Debian 13; elsewhere docker.io has it
_WITHIN_DOCKER = frozenset({"docker-cli"})

DEBIAN = LabDistribution(
    name="Debian",
    word="debian",
    suites=("trixie", "bookworm"),
    archives={
        "http://deb.debian.org/debian": ("", "-updates"),
        "http://deb.debian.org/debian-security": ("-security",),
    },
    components="main",
    keyring="/usr/share/keyrings/debian-archive-keyring.gpg",
    lacking={"bookworm": _WITHIN_DOCKER},
)
UBUNTU = LabDistribution(
    name="Ubuntu",
    word="ubuntu",
    suites=("noble", "jammy"),
    archives={"http://archive.ubuntu.com/ubuntu": POCKETS},
    components="main universe",
    keyring="/usr/share/keyrings/ubuntu-archive-keyring.gpg",
    keyring_package="pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
    keyring_digest="36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8",
    fingerprints=("790BC7277767219C42C86F933B4FE6ACC0B21F32", "F6ECB3762474EDA9D21B7022871920D1991BC93C"),
    included=("apt", "ubuntu-keyring"),
    lacking={"noble": _WITHIN_DOCKER, "jammy": _WITHIN_DOCKER},
)
DISTRIBUTIONS = (DEBIAN, UBUNTU)
# the releases that pai-install knows; the first is that of machines for which nothing else is said
SUITES = tuple(suite for distribution in DISTRIBUTIONS for suite in distribution.suites)
SUITE = SUITES[0]


def distribution_of(suite: str) -> LabDistribution:
    """Returns the distribution of a suite. Raises KeyError for one outside SUITES."""
    for distribution in DISTRIBUTIONS:
        if suite in distribution.suites:
            return distribution
    raise KeyError(suite)
