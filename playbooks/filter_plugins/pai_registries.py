"""Filters for the clients of registries: files for pai_files, made of data, so that no text is pasted together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import tomlkit

HOSTS_FOLDER = "/etc/containerd/certs.d"
DOCKER_FOLDER = "/etc/docker/certs.d"
AUTHORITIES = "/etc/pai-install/registry"
BUNDLE = f"{AUTHORITIES}/ca.pem"
STORE_AUTHORITIES = "/etc/pai-install/store/ca.pem"
NAMED = {"bundle": BUNDLE, "store": STORE_AUTHORITIES}
# containerd's own time limit is 30 s, for each layer of an image again
DIAL_TIMEOUT = "5s"
# The kubelet looks into its own folder first, and keeps what it read for up to five minutes; Docker's client reads its
# file for every pull. Neither is restarted.
LOGIN_FILES = ("/var/lib/kubelet/config.json", "/root/.docker/config.json")
# the name under which Docker's client and the kubelet look for a login at Docker Hub
DOCKER_HUB = {"docker.io": "https://index.docker.io/v1/"}


def registry_files(upstreams: Sequence[Mapping[str, Any]], bundle: str) -> list[dict[str, Any]]:
    """hosts.toml of each registry, and the authorities (PEM) that they name. All of it is read for every pull.

    upstreams: as in the role's variable of that name. bundle: PEM of the cache's authorities.
    """
    own = dict.fromkeys(text for upstream in upstreams for text in _authorities(upstream))
    files = {BUNDLE: bundle} if bundle else {}
    # A name by digest: two registries may have the same authority, and a new one gets a new file.
    files |= {authority_path(text): text for text in own if text != "bundle"}
    authorities = [{"path": path, "content": text, "mode": "0644", "live": True} for path, text in files.items()]
    return [*authorities, *map(hosts_file, upstreams)]


def docker_authorities(upstreams: Sequence[Mapping[str, Any]], cache: str, bundle: str) -> list[dict[str, Any]]:
    """The authorities (PEM) of registries, their mirrors and the cache (HOST:PORT, or "") where Docker looks for them.

    Docker reads the folder of a host for every pull.
    """
    known = {cache: bundle} if cache and bundle else {}
    for upstream in upstreams:
        own = [(f"https://{upstream['name']}", upstream.get("ca", ""))]
        endpoints = [(str(it["endpoint"]), it.get("ca", "")) for it in upstream.get("endpoints", ())]
        found = {urlsplit(url).netloc: str(text) for url, text in (*own, *endpoints) if text and text not in NAMED}
        known = {**found, **known}
    return [
        {"path": f"{DOCKER_FOLDER}/{host}/ca.crt", "content": text, "mode": "0644", "live": True}
        for host, text in sorted(known.items())
    ]


def store_files(host: str, address: str, authorities: str, *, docker: bool) -> list[dict[str, Any]]:
    """The files by which programs of a machine know the component store: containerd, pai_artifacts, and Docker.

    host: in the names of its images. address: HOST:PORT. authorities: PEM.
    """
    known = {"content": authorities, "mode": "0644", "live": True}
    dockers = [{"path": f"{DOCKER_FOLDER}/{address}/ca.crt", **known}] if docker else []
    hosts = hosts_file({"name": host, "endpoints": [{"endpoint": f"https://{address}", "ca": "store"}]})
    return [{"path": STORE_AUTHORITIES, **known}, *dockers, hosts]


def _authorities(upstream: Mapping[str, Any]) -> Iterator[str]:
    words = [upstream.get("ca"), *(endpoint.get("ca") for endpoint in upstream.get("endpoints", ()))]
    yield from (str(word) for word in words if word)


def authority_path(text: str) -> str:
    """Returns the path of an authority on a machine. text: "bundle", "store", or PEM."""
    if text in NAMED:
        return NAMED[text]
    return f"{AUTHORITIES}/ca-{hashlib.sha256(text.encode()).hexdigest()[:16]}.pem"


def hosts_file(upstream: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the file of one registry. Only root can read a file that may hold credentials."""
    endpoints = upstream.get("endpoints", ())
    secret = any(endpoint.get("auth_token") for endpoint in endpoints)
    return {
        "path": f"{HOSTS_FOLDER}/{upstream['name']}/hosts.toml",
        "content": hosts_toml(upstream),
        "mode": "0600" if secret else "0644",
        "secret": secret,
        # An administrator may have written this file before.
        "backup": True,
        "live": True,
    }


def hosts_toml(upstream: Mapping[str, Any]) -> str:
    """Returns containerd's hosts.toml of a registry: each `host` in order, then `server`, described by the top-level
    keys.

    Without `server`, containerd falls back to the registry of that name. So if the registry itself must not be used,
    the last endpoint is the server.
    """
    endpoints = list(upstream.get("endpoints", ()))
    document: dict[str, Any] = {}
    if upstream.get("server") and (upstream.get("fallback", True) or not endpoints):
        own = {"ca": [authority_path(upstream["ca"])]} if upstream.get("ca") else {}
        document = {"server": upstream["server"], **own, **({"skip_verify": True} if upstream.get("insecure") else {})}
    elif endpoints and not upstream.get("fallback", True):
        last = endpoints.pop()
        document = {"server": last["endpoint"], **_host(last)}
    # With nothing to fall back to, a slow cache is better than none.
    wait = {"dial_timeout": DIAL_TIMEOUT} if document else {}
    hosts = {entry["endpoint"]: {**_host(entry), **wait} for entry in endpoints}
    return tomlkit.dumps({**document, **({"host": hosts} if hosts else {})})


def _host(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of one host. A host with a path below /v2/, such as a Harbor project, has the whole path."""
    found: dict[str, Any] = {"capabilities": ["pull", "resolve"]}
    if endpoint.get("ca"):
        found["ca"] = [authority_path(endpoint["ca"])]
    # containerd would append /v2 to the path otherwise, and the registry would know no such address.
    if "/v2/" in urlsplit(endpoint["endpoint"]).path.rstrip("/"):
        found["override_path"] = True
    if endpoint.get("auth_token"):
        # containerd passes over a login in the URL
        found["header"] = {"Authorization": f"Basic {endpoint['auth_token']}"}
    return found


def registry_cached(upstreams: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the registries that the cluster's cache serves."""
    return [one for one in upstreams if any(entry.get("ca") == "bundle" for entry in one.get("endpoints", ()))]


def registry_logins(logins: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Returns the files with credentials. Foreign entries in them stay.

    logins: registry and auth_token of each. Without logins, the old ones are removed from existing files.
    """
    auths = {DOCKER_HUB.get(login["registry"], login["registry"]): {"auth": login["auth_token"]} for login in logins}
    shape = {"merge_json": {"auths": auths}, "secret": True, "live": True, "if_there": not auths}
    # A file that holds logins of others only keeps its mode.
    return [{"path": path, **shape, "mode": "0600" if auths else ""} for path in LOGIN_FILES]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {
            "docker_authorities": docker_authorities,
            "registry_cached": registry_cached,
            "registry_files": registry_files,
            "registry_logins": registry_logins,
            "store_files": store_files,
        }
