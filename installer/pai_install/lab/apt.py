"""The controller host's apt access, rewritten for the release that runs in the machines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pai_install.lab.distribution import DEBIAN, POCKETS, SUITE, LabDistribution, distribution_of
from pai_install.system.proc import run

_KEPT_OPTIONS = re.compile(
    r"^Acquire::(https?|ftp|Check-Valid-Until|Check-Date|Max-ValidTime|Retries|ForceIPv[46]|Proxy-Auto-Detect)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AptSource:
    """One archive: its URI, the suites taken from it, the keyring that signs it, further one-line options."""

    uri: str
    suites: tuple[str, ...]
    signed_by: str = DEBIAN.keyring
    options: tuple[tuple[str, str], ...] = ()
    components: str = DEBIAN.components

    def stanza(self) -> str:
        """The source in deb822 form."""
        fields = [
            ("Types", "deb"),
            ("URIs", self.uri),
            ("Suites", " ".join(self.suites)),
            ("Components", self.components),
        ]
        fields += [("Signed-By", self.signed_by), *self.options]
        return "".join(f"{key}: {value}\n" for key, value in fields)

    def line(self, keyring: Path) -> str:
        """Returns the source in one-line form for mmdebstrap, first suite only. keyring: path of the keys
        on the host.
        """
        return f"deb [signed-by={keyring}] {self.uri} {self.suites[0]} {self.components}"


@dataclass(frozen=True, slots=True)
class AptAccess:
    """Package access of a machine.

    options: lines for apt.conf. files: absolute path -> content for keyrings and credentials.
    certificates: file name -> PEM of an additional authority of the controller host.
    suite: the release of the sources.
    """

    sources: tuple[AptSource, ...]
    options: str
    files: Mapping[str, bytes]
    certificates: Mapping[str, bytes]
    suite: str = SUITE

    @property
    def distribution(self) -> LabDistribution:
        """That of the suite."""
        return distribution_of(self.suite)

    @property
    def bootstrap(self) -> AptSource:
        """The archive that holds the release itself."""
        return next(source for source in self.sources if source.suites[0] == self.suite)

    def sources_file(self) -> str:
        """Content of the one file in /etc/apt/sources.list.d."""
        return "\n".join(source.stanza() for source in self.sources)


def default_sources(suite: str = SUITE) -> tuple[AptSource, ...]:
    """The distribution's own archives: for a box without usable sources."""
    distribution = distribution_of(suite)
    return tuple(
        AptSource(
            uri,
            tuple(f"{suite}{pocket}" for pocket in pockets),
            distribution.keyring,
            components=distribution.components,
        )
        for uri, pockets in distribution.archives.items()
    )


def rewritten_sources(texts: Iterable[tuple[str, str]], codename: str, suite: str = SUITE) -> tuple[AptSource, ...]:
    """Returns the controller host's sources, given as (file name, content), with other suites. Defaults if none is
    usable.

    Only archives of the suite's distribution are used: suites of the host's release, component main.
    """
    found: list[AptSource] = []
    for name, text in texts:
        entries = _deb822(text) if name.endswith(".sources") else _one_line(text)
        found += [source for entry in entries if (source := _rewritten(entry, codename, suite)) is not None]
    # Without the release itself, its updates are of no use.
    has_release = any(source.suites[0] == suite for source in found)
    return tuple(dict.fromkeys(found)) if has_release else default_sources(suite)


def kept_options(dump: str) -> str:
    """Lines of `apt-config dump` that say how to reach an archive: proxy, certificates, validity, retries."""
    kept = [line for line in dump.splitlines() if _KEPT_OPTIONS.match(line) and not line.rstrip().endswith('"";')]
    return "".join(f"{line}\n" for line in kept)


def read_box(root: Path = Path("/"), suite: str = SUITE) -> AptAccess:
    """Returns the apt configuration of the host with files under `root`, for machines of that suite."""
    etc = root / "etc/apt"
    paths = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    texts = [(path.name, path.read_text()) for path in paths if path.suffix in (".list", ".sources") and path.is_file()]
    sources = rewritten_sources(texts, _codename(root), suite)
    wanted = [Path(source.signed_by) for source in sources if source.signed_by != distribution_of(suite).keyring]
    wanted += [Path("/") / path.relative_to(root) for path in sorted((etc / "auth.conf.d").glob("*.conf"))]
    wanted.append(Path("/etc/apt/auth.conf"))
    files = {str(path): (root / path.relative_to("/")) for path in wanted}
    authorities = sorted((root / "usr/local/share/ca-certificates").rglob("*.crt"))
    return AptAccess(
        sources=sources,
        options=kept_options(run(["apt-config", "dump"]).stdout),
        files={name: path.read_bytes() for name, path in files.items() if path.is_file()},
        certificates={path.name: path.read_bytes() for path in authorities},
        suite=suite,
    )


def _codename(root: Path) -> str:
    release = root / "etc/os-release"
    match = re.search(r'^VERSION_CODENAME="?([\w-]+)', release.read_text() if release.exists() else "", re.MULTILINE)
    return match[1] if match else SUITE


def _deb822(text: str) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = []
    for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1] in (" ", "\t"):
                fields[key] = f"{fields.get(key, '')}\n{line}"
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        entries += [{**fields, "uri": uri} for uri in fields.get("uris", "").split()]
    return entries


def _one_line(text: str) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = []
    for line in text.splitlines():
        match = re.match(r"^\s*(deb)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]*)", line)
        if match:
            options = dict(word.split("=", 1) for word in (match[2] or "").split() if "=" in word)
            entries.append(
                {
                    **{key.lower(): value.replace(",", " ") for key, value in options.items()},
                    "types": "deb",
                    "uri": match[3],
                    "suites": match[4],
                    "components": match[5],
                }
            )
    return entries


def _rewritten(entry: Mapping[str, str], codename: str, suite: str) -> AptSource | None:
    distribution = distribution_of(suite)
    pockets = [pocket for pocket in POCKETS if f"{codename}{pocket}" in entry.get("suites", "").split()]
    is_named_so = distribution.word in entry["uri"].rstrip("/").rsplit("/", 1)[-1]
    official = is_named_so or f"{distribution.word}-archive" in entry.get("signed-by", "")
    signed_by = entry.get("signed-by") or distribution.keyring
    usable = "deb" in entry.get("types", "deb").split() and entry.get("enabled", "yes").lower() != "no"
    if not (pockets and official and usable and "main" in entry.get("components", "").split()):
        return None
    if "PGP PUBLIC KEY" in signed_by:
        signed_by = distribution.keyring  # a key inside the stanza is that of the box's release
    options = tuple((key.title(), entry[key]) for key in ("trusted", "check-valid-until", "check-date") if key in entry)
    suites = tuple(f"{suite}{pocket}" for pocket in pockets)
    return AptSource(entry["uri"], suites, signed_by, options, distribution.components)
