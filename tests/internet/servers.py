"""How the hosts of upstream, and a company's mirror, answer: redirects, logins, tokens that end, limits."""

from __future__ import annotations

import base64
import re
import secrets
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.internet.content import Content

MIRROR_HOST = "mirror.corp.example"
MIRROR_LOGIN = "Basic " + base64.b64encode(b"robot:pass word").decode()
TOKEN_LASTS = 3  # requests
STORAGES = {
    "dl.k8s.io": "cdn.dl.k8s.io",
    "github.com": "release-assets.githubusercontent.com",
    "registry-1.docker.io": "production.cloudflare.docker.com",
    "ghcr.io": "pkg-containers.githubusercontent.com",
    "nvcr.io": "layers.nvcr.io",
    "mcr.microsoft.com": "westeurope.data.mcr.microsoft.com",
}
# registry.k8s.io sends on for everything, and elsewhere for blobs
KUBERNETES_REGISTRY = "europe-west1-docker.pkg.dev"
KUBERNETES_BLOBS = "prod-registry-k8s-io-eu-west-1.s3.dualstack.eu-west-1.amazonaws.com"
# where the first answer is a 401 that says who gives tokens
REALMS = {
    "registry-1.docker.io": "https://auth.docker.io/token",
    "ghcr.io": "https://ghcr.io/token",
    "nvcr.io": "https://nvcr.io/proxy_auth",
    MIRROR_HOST: f"https://{MIRROR_HOST}/token",
}
_STORAGE_HOSTS = {*STORAGES.values(), KUBERNETES_BLOBS}
HOSTS = {
    *STORAGES, *_STORAGE_HOSTS, KUBERNETES_REGISTRY, "registry.k8s.io", "auth.docker.io", "nvidia.github.io",
    "raw.githubusercontent.com",
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


NOT_FOUND = Answer(404)


@dataclass
class Servers:
    """Every host's answers. busy: how often each registry still says 429. renewed: tokens given, by host."""

    content: Content
    busy: dict[str, int] = field(default_factory=dict)
    retry_after: str = "0"
    renewed: dict[str, int] = field(default_factory=dict)
    _tokens: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, host: str, target: str, headers: Mapping[str, str]) -> Answer:
        """What `host` says to GET `target`."""
        path = urllib.parse.unquote(urllib.parse.urlsplit(target).path)
        login = headers.get("Authorization", "")
        if host in _STORAGE_HOSTS and login:
            return Answer(400, b"one login too many")
        if self.busy.get(host, 0) > 0:
            self.busy[host] -= 1
            return Answer(429, headers={"Retry-After": self.retry_after} if self.retry_after else {})
        if f"https://{host}{path}" in REALMS.values():
            return self._token(host, login)
        return self._ways().get(host, self._file)(host, path, login)

    def _ways(self) -> Mapping[str, Callable[[str, str, str], Answer]]:
        return {
            "dl.k8s.io": self._elsewhere,
            "github.com": self._elsewhere,
            **dict.fromkeys(("registry-1.docker.io", "ghcr.io", "nvcr.io", "mcr.microsoft.com"), self._registry),
            "registry.k8s.io": self._kubernetes,
            KUBERNETES_REGISTRY: self._kubernetes_behind,
            MIRROR_HOST: self._mirror,
            **dict.fromkeys(_STORAGE_HOSTS, self._stored),
        }

    def _elsewhere(self, host: str, path: str, login: str) -> Answer:
        """A file of a release, which another host has."""
        del login
        return _to(f"https://{STORAGES[host]}/{host}{path}?sig=of-today")

    def _stored(self, host: str, path: str, login: str) -> Answer:
        del host, login
        if blob := re.search(r"sha256:[0-9a-f]{64}", path):
            return _found(self.content.blobs, blob[0])
        return _found(self.content.files, f"https:/{path}")

    def _file(self, host: str, path: str, login: str) -> Answer:
        del login
        return _found(self.content.files, f"https://{host}{path}")

    def _registry(self, host: str, path: str, login: str) -> Answer:
        if host in REALMS and not self._valid(login):
            return _challenge(host)
        name = {"registry-1.docker.io": "docker.io"}.get(host, host)
        repository, kind, reference = _parsed(path)
        if kind == "blobs":
            return _to(f"https://{STORAGES[host]}/{reference}?sig=of-today")
        return _found(self.content.manifests, (f"{name}/{repository}", reference))

    def _kubernetes(self, host: str, path: str, login: str) -> Answer:
        del host, login
        repository, kind, reference = _parsed(path)
        if kind == "blobs":
            return _to(f"https://{KUBERNETES_BLOBS}/containers/images/{reference}")
        return _to(f"https://{KUBERNETES_REGISTRY}/v2/k8s-artifacts-prod/images/{repository}/manifests/{reference}")

    def _kubernetes_behind(self, host: str, path: str, login: str) -> Answer:
        del host, login
        repository, _kind, reference = _parsed(path.replace("/k8s-artifacts-prod/images/", "/"))
        return _found(self.content.manifests, (f"registry.k8s.io/{repository}", reference))

    def _mirror(self, host: str, path: str, login: str) -> Answer:
        """A repository manager: files want its login, images a token that it gives for the login."""
        if not path.startswith("/v2/"):
            if login != MIRROR_LOGIN:
                return Answer(401, headers={"WWW-Authenticate": 'Basic realm="repository"'})
            return _found(self.content.files, path.replace("/pai/", "https://", 1))
        if not self._valid(login):
            return _challenge(host)
        repository, kind, reference = _parsed(path)
        if kind == "blobs":
            return _found(self.content.blobs, reference)
        return _found(self.content.manifests, (repository.removeprefix("pai/"), reference))

    def _token(self, host: str, login: str) -> Answer:
        if host == MIRROR_HOST and login != MIRROR_LOGIN:
            return Answer(401, headers={"WWW-Authenticate": 'Basic realm="repository"'})
        token = secrets.token_hex(8)
        with self._lock:
            self._tokens[f"Bearer {token}"] = TOKEN_LASTS
            self.renewed[host] = self.renewed.get(host, 0) + 1
        return Answer(200, f'{{"token": "{token}", "expires_in": 300}}'.encode())

    def _valid(self, login: str) -> bool:
        """Whether a token still counts; each use brings its end nearer."""
        with self._lock:
            left = self._tokens.get(login, 0)
            self._tokens[login] = max(0, left - 1)
            return left > 0


def _parsed(path: str) -> tuple[str, str, str]:
    """/v2/REPOSITORY/(manifests|blobs)/REFERENCE."""
    repository, kind, reference = path.removeprefix("/v2/").rsplit("/", 2)
    return repository, kind, reference


def _found(shelf: Mapping[Any, bytes], key: object) -> Answer:
    return Answer(200, shelf[key]) if key in shelf else NOT_FOUND


def _to(url: str) -> Answer:
    return Answer(307 if "/v2/" in url or "sha256:" in url else 302, headers={"Location": url})


def _challenge(host: str) -> Answer:
    words = f'Bearer realm="{REALMS[host]}",service="{host}",scope="repository:x:pull"'
    return Answer(401, b'{"errors": [{"code": "UNAUTHORIZED"}]}', {"WWW-Authenticate": words})
