"""What is particular to a rotation of the back end: where the cache's content is now, and what is left of it."""

from __future__ import annotations

from pai_install.errors import ExitCode, PaiError
from pai_install.registry.compile import registries_of
from pai_install.registry.content import Content, content_of, place_of, read_note
from pai_install.registry.identity import Identity
from pai_install.run.pipeline import Prepared
from pai_install.site.model import Site

_RECORD = "docker_cache"


def wanted_place(site: Site) -> Content:
    """Where the site's files want the content. Raises PaiError for a site without a cache."""
    cache = registries_of(site).cache
    if cache is None:
        raise PaiError(
            "this site has no registry cache of its own", code="registry-cache-missing", exit_code=ExitCode.USAGE
        )
    return content_of(cache)


def used_place(site: Site, prepared: Prepared) -> Content:
    """Where the first control plane's cache keeps its content now. Raises PaiError where that is not known."""
    leader = site.control_planes[0].hostname
    if leader in prepared.plan.unreachable:
        raise PaiError(
            f"{leader} has the cache and does not answer: {prepared.plan.unreachable[leader]}",
            code="leader-unreachable",
            remedy="nothing was changed; run the same command again when it answers",
            exit_code=ExitCode.UNREACHABLE,
        )
    record = prepared.observation.machines[leader].roles.get(_RECORD)
    used = read_note(record.notes.get("content", "")) if record else None
    if used is None:
        raise PaiError(
            f"{leader} has no record of where its cache keeps the content",
            code="registry-record-missing",
            remedy="write into config.yaml where it is, run apply, then write where it shall be and run this again",
        )
    cache = registries_of(site).cache
    if cache is not None:
        place_of(cache, used)  # the key of its account must be there
    return used


def came_back(identity: Identity, site: Site) -> bool:
    """Whether the site's files name the place again that a move was to leave."""
    return wanted_place(site) in (identity.content, identity.left)


def farewell(old: Content, new: Content, leader: str) -> str:
    """The last words of a move: nothing of the old place was deleted."""
    remove = (
        f"on {leader}: sudo rm -r {old.folder}" if old.folder else "delete the container where nothing else uses it"
    )
    return f"the cache keeps its content in {new}; what it had is still in {old}\nto remove that: {remove}"
