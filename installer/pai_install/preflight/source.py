"""Whether the controller host has the components of a site in its cache or can fetch them."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from pai_install.checks.check import Check
from pai_install.checks.finding import Finding
from pai_install.checks.result import failed, passed
from pai_install.components.catalogue import load_catalogue
from pai_install.components.fetch import cached
from pai_install.components.golang import proxies
from pai_install.components.model import PinnedComponent
from pai_install.components.requirements import check_disk, missing
from pai_install.components.source import Source
from pai_install.components.store import default_cache
from pai_install.components.upstream import Releases
from pai_install.errors import PaiError
from pai_install.parts.selection import choose_components, mirror_of
from pai_install.preflight.model import BOX
from pai_install.site import Site
from pai_install.system.refusals import network_reason
from pai_install.system.words import shortened

COMPONENT_SOURCE = Check(
    id="component-source",
    title="The controller host has every component in its cache, or can fetch it",
    judge=None,
    about="box",
    reads="the component cache, and the first byte of one real file or image from each server of a missing component",
    rule=(
        "FAIL when a server does not deliver it, a component does not exist for the machines' architecture, or "
        "packages or disk space to build components are missing"
    ),
    remedy="check the network and the proxy of this host, or set component_source to mirror or bundle in config.yaml",
)
_TIMEOUT_S = 5.0
# servers without access have the same cause
_SHOWN = 2
Probe = Callable[[str], str]
Fetch = Callable[[Releases, Sequence[PinnedComponent]], Mapping[str, str]]


def answer_problem(url: str) -> str:
    """Why a server does not answer at all, empty when it does, be it with an error of its own."""
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - http and https only, see _servers
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310
            return ""
    except urllib.error.HTTPError as error:
        # Any answer proves that the server is reachable. Only a 407 comes from a proxy in between.
        return f"the proxy answers {error.code} {error.reason}" if error.code == 407 else ""
    except (OSError, ValueError) as error:
        return network_reason(error)


def first_bytes(releases: Releases, wanted: Sequence[PinnedComponent]) -> Mapping[str, str]:
    """Returns a file or image of each server -> why its first byte does not arrive, or {}."""
    probes = releases.probes(wanted)
    with ThreadPoolExecutor(max_workers=8) as pool:
        return dict(zip(probes, pool.map(_trouble, probes.values()), strict=True))


def _trouble(fetch: Callable[[], None]) -> str:
    try:
        fetch()
    except PaiError as error:
        return error.message
    return ""


def source_finding(
    site: Site, *, cache: Path | None = None, probe: Probe = answer_problem, fetch: Fetch = first_bytes
) -> Finding:
    """One finding about the controller host: every component is in the cache, or could be fetched."""
    settings = site.settings
    try:
        selection, source = choose_components(site)
        wanted = [pick for pick, entry in cached(selection, source, cache).items() if entry is None]
        # A bundle has everything in it. Other sources need tools and disk space here to build or unpack.
        if wanted and settings.component_source != "bundle":
            _require_means(wanted, source, cache)
    except PaiError as error:
        return COMPONENT_SOURCE.finding(
            BOX, failed(error.message, error.details, "the components", remedy=error.remedy)
        )
    if not wanted:
        return COMPONENT_SOURCE.finding(
            BOX, passed(f"{len(selection.picks)} components", message="every component is in the cache")
        )
    return _reachable(site, wanted, _fetcher(site, probe, fetch))


def _require_means(wanted: Sequence[PinnedComponent], source: Source, cache: Path | None) -> None:
    """Raises PaiError if the controller host lacks packages or disk space to build uncached components."""
    lacking = missing(package for pick in wanted for package in source.debian_packages(pick))
    if lacking:
        raise PaiError(
            f"cannot build components from the source {source.name}: this host lacks {', '.join(lacking)}",
            code="build-tools-missing",
            remedy=f"run apt-get install {' '.join(lacking)}",
        )
    check_disk(cache or default_cache(), max(source.disk_mb(pick) for pick in wanted))


def _fetcher(site: Site, probe: Probe, fetch: Fetch) -> Callable[[Sequence[PinnedComponent]], Mapping[str, str]]:
    """Returns a function: components to fetch -> requested content and its error."""
    match site.settings.component_source:
        case "bundle":
            return lambda _wanted: {}
        case "modules":
            proxy = [_server(url) for url in proxies(os.environ)[:1] if url.startswith("http")]
            return lambda _wanted: {url: probe(url) for url in proxy}
        case _:
            return partial(fetch, Releases(load_catalogue(), mirror_of(site)))


def _reachable(
    site: Site,
    wanted: Sequence[PinnedComponent],
    fetch: Callable[[Sequence[PinnedComponent]], Mapping[str, str]],
) -> Finding:
    fetched = [pick for pick in wanted if pick.component not in site.settings.component_images]
    answers = fetch(fetched) if fetched else {}
    servers = sorted({_host(url) for url in answers})
    missing_words = f"{len(fetched)} components to fetch from {', '.join(servers)}" if servers else "from files"
    problems = {url: why for url, why in answers.items() if why}
    if not problems:
        return COMPONENT_SOURCE.finding(BOX, passed(missing_words, message="the component source answers"))
    words = [why if _host(url) in why else f"{url}: {why}" for url, why in problems.items()]
    value = shortened(words, _SHOWN, separator="; ")
    return COMPONENT_SOURCE.finding(BOX, failed("the component source does not answer", value, missing_words))


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _server(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
