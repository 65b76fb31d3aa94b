"""Requests to the registry that a machine uses for an image: the first entry of its hosts.toml. Python 3.9."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import Any, NamedTuple, Optional

from ansible.module_utils.pai_images import HOSTS_DIR
from ansible.module_utils.pai_json import parse

INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
ANSWER_S = 60
CHUNK = 1 << 20
# OpenSSL's words, by its version, for an answer that is plain text
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
LARGEST_DOCUMENT = 4 << 20


class RegistryError(Exception):
    """A registry is unusable. The text explains the cause to the admin."""


class WithoutTlsError(RegistryError):
    """Something answers there, without TLS."""


class RegistryUnreachableError(RegistryError):
    """Nothing answers there now."""


class LoginWantedError(RegistryError):
    """It gives tokens, and asks for one."""


class Endpoint(NamedTuple):
    """The endpoint for images of an upstream. ca: files, empty for the system's. authorization: header or "".

    whole: the URL replaces /v2 (containerd's override_path).
    """

    url: str
    ca: tuple[str, ...] = ()
    authorization: str = ""
    whole: bool = False

    @property
    def root(self) -> str:
        """The registry's own address, without a path."""
        parts = urllib.parse.urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def address(self, path: str) -> str:
        """The address of PATH, which begins with /v2/ where it is one of the registry's API."""
        return self.url.rstrip("/") + path[len("/v2") :] if self.whole and path != "/v2/" else self.root + path


class Image(NamedTuple):
    """An image as people write it: upstream, repository, tag or digest."""

    upstream: str
    repository: str
    tag: str

    def __str__(self) -> str:
        mark = "@" if self.tag.startswith("sha256:") else ":"
        return f"{self.upstream}/{self.repository}{mark}{self.tag}"


def parse_image(text: str) -> Image:
    """The image of a name as Docker reads it: busybox is docker.io/library/busybox:latest."""
    name, at, digest = text.partition("@")
    # Docker takes the first part for a host only with a dot, a colon, or as localhost. So busybox/x is a repository.
    first, slash, rest = name.partition("/")
    host = first if slash and ("." in first or ":" in first or first == "localhost") else ""
    path = rest if host else name
    repository, colon, tag = path.rpartition(":")
    # A colon before a slash belongs to the port of the host.
    if not colon or "/" in tag:
        repository, tag = path, "latest"
    if not host:
        repository = repository if "/" in repository else f"library/{repository}"
    return Image(host or "docker.io", repository, digest if at else tag)


def _tables(text: str) -> Iterator[tuple[str, str, Any]]:
    """Yields (table, key, value) of the lines that role registry_client writes. Other lines are skipped."""
    table = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            table = line.strip("[] ")
            continue
        key, equals, value = line.partition("=")
        try:
            yield table, key.strip().strip('"').lower(), json.loads(value) if equals else None
        except ValueError:
            continue


def endpoint(upstream: str, folder: str = HOSTS_DIR) -> Endpoint:
    """The first endpoint for an upstream on this machine. Raises RegistryError where none is configured."""
    path = os.path.join(folder, upstream, "hosts.toml")
    try:
        with open(path, encoding="utf-8") as handle:
            lines = list(_tables(handle.read()))
    except OSError as error:
        raise RegistryError(f"this machine has no {path}: it asks {upstream} itself") from error
    # containerd asks the hosts of the file in their order. The first one is therefore the cache or mirror.
    hosts = [table for table, _key, _value in lines if table.startswith('host."') and not table.endswith(".header")]
    first = hosts[0] if hosts else ""
    found = {key: value for table, key, value in lines if table == first}
    header = {key: value for table, key, value in lines if table == (f"{first}.header" if first else "header")}
    url = first[len('host."') : -1] if first else str(found.get("server") or "")
    if not url:
        raise RegistryError(f"{path} names no server")
    ca = found.get("ca") or ()
    files = (ca,) if isinstance(ca, str) else tuple(ca)
    return Endpoint(url, files, str(header.get("authorization") or ""), bool(found.get("override_path")))


def trust(files: tuple[str, ...]) -> ssl.SSLContext:
    """Returns a TLS context with the system's authorities and these files. Raises RegistryError for an invalid file."""
    context = ssl.create_default_context()
    for path in files:
        try:
            context.load_verify_locations(path)
        except (OSError, ssl.SSLError) as error:
            raise RegistryError(f"{path} cannot be used to check the registry's certificate: {error}") from error
    return context


def only_these(authorities: str) -> ssl.SSLContext:
    """Returns a TLS context with only these authorities (PEM). Raises ssl.SSLError or ValueError for invalid ones."""
    # create_default_context would also trust the system's authorities, whose customers could answer then.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authorities)
    return context


class Client:
    """Requests to one endpoint on behalf of an upstream. context: TLS context, by default of the endpoint."""

    def __init__(self, place: Endpoint, upstream: str, context: Optional[ssl.SSLContext] = None) -> None:
        self.place = place
        self.upstream = upstream
        # the machine's proxy is for the world outside; a cache is asked directly
        https = urllib.request.HTTPSHandler(context=context or trust(place.ca))
        handlers = [urllib.request.ProxyHandler({}), https]
        self.opener = urllib.request.build_opener(*handlers)

    def open(self, path: str, accept: tuple[str, ...] = ()) -> http.client.HTTPResponse:
        """The answer to GET PATH. Raises RegistryError with the reason in plain words."""
        # containerd adds ns for a mirror. A cache of several upstreams finds the upstream by it.
        query = f"?{urllib.parse.urlencode({'ns': self.upstream})}" if self.upstream else ""
        address = self.place.address(path) + query
        headers = {"Accept": ", ".join(accept)} if accept else {}
        if self.place.authorization:
            headers["Authorization"] = self.place.authorization
        try:
            answer = self.opener.open(urllib.request.Request(address, headers=headers), timeout=ANSWER_S)
        except urllib.error.HTTPError as error:
            # A public registry answers 401 to everybody first, and gives tokens without a login. That is no failure.
            bearer = (error.headers.get("WWW-Authenticate") or "").lower().startswith("bearer")
            kind = LoginWantedError if error.code == 401 and bearer and not self.place.authorization else RegistryError
            raise kind(_refusal(error, path)) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise silence(self.place.url, error) from error
        return answer  # type: ignore[no-any-return]  # urllib types it as Any

    def ping(self) -> None:
        """Raises RegistryError unless a registry responds and accepts the machine's credentials.

        Also requests a token from registries with anonymous tokens.
        """
        try:
            with self.open("/v2/") as answer:
                # A captive portal or a proxy answers 200, too. Only a registry sends this header.
                if "registry/2.0" not in (answer.headers.get("Docker-Distribution-Api-Version") or ""):
                    raise RegistryError(f"{self.place.root} answers, but is no registry")
        except LoginWantedError:
            return

    def document(self, path: str, accept: tuple[str, ...]) -> dict[str, Any]:
        """A JSON object of the registry."""
        with self.open(path, accept) as answer:
            try:
                found = parse(answer.read(LARGEST_DOCUMENT))
            except (ValueError, OSError) as error:
                raise RegistryError(f"{self.place.url}{path} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise RegistryError(f"{self.place.url}{path} is no JSON object")
        return found

    def drain(self, path: str) -> int:
        """Reads and discards a blob. Returns its size in bytes."""
        size = 0
        try:
            with self.open(path) as answer:
                # A layer may have several gigabytes, so it never is in memory as a whole.
                while chunk := answer.read(CHUNK):
                    size += len(chunk)
        except (OSError, http.client.HTTPException) as error:
            raise RegistryError(f"{self.place.url} broke off: {error}") from error
        return size


def pull_through(client: Client, image: Image, architecture: str) -> int:
    """Reads an image for one architecture through the endpoint, which fills a cache. Returns the number of bytes."""
    manifest = client.document(f"/v2/{image.repository}/manifests/{image.tag}", (*INDEXES, *MANIFESTS))
    # An index names a manifest per architecture. A cache that reads the index alone holds no layer.
    if "manifests" in manifest:
        chosen = _for_architecture(manifest["manifests"], architecture)
        if chosen is None:
            raise RegistryError(f"{image} has no variant for linux/{architecture}")
        manifest = client.document(f"/v2/{image.repository}/manifests/{chosen}", MANIFESTS)
    layers = manifest.get("layers")
    parts = [manifest.get("config"), *(layers if isinstance(layers, list) else [])]
    # An empty layer may occur several times in an image.
    digests = dict.fromkeys(part["digest"] for part in parts if isinstance(part, Mapping) and "digest" in part)
    return sum(client.drain(f"/v2/{image.repository}/blobs/{digest}") for digest in digests)


def probe_insecure(url: str, username: str, password: str) -> None:
    """As `probe`, of a registry that the site calls insecure: any certificate will do, and no TLS, too."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        # TLS first, as Docker does with an insecure registry: a password should not go over the wire in clear text.
        probe(url, username, password, "", trusting)
    except (WithoutTlsError, RegistryUnreachableError):
        probe(url.replace("https://", "http://", 1), username, password, "")


def probe(url: str, username: str, password: str, ca: str, context: Optional[ssl.SSLContext] = None) -> None:
    """Raises RegistryError unless a registry answers at `url` and takes the account, where one is given.

    ca: PEM of whom to trust beside the system, or "". RegistryUnreachableError: nothing answered at all.
    """
    context = context or ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError) as error:
            raise RegistryError(f"the CA for {url} is none: {error}") from error
    # This one uses the proxy of the environment, because an upstream is outside of the site.
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    basic = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode() if username else ""
    status, headers = _response(opener, f"{url}/v2/", "")
    challenge = headers.get("www-authenticate", "")
    _require_working(url, status)
    if "registry/2.0" not in headers.get("docker-distribution-api-version", "") and not challenge:
        raise RegistryError(f"{url} answers, but is no registry (HTTP {status})")
    # An answer of 200 to a request without a login means that the registry asks for none.
    if not username or status == 200:
        return
    words = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    if challenge.lower().startswith("bearer") and "realm" in words:
        # A registry could send its visitors from TLS to plain HTTP, or to a file of this machine.
        if urllib.parse.urlsplit(words["realm"]).scheme != urllib.parse.urlsplit(url).scheme:
            raise RegistryError(f"{url} sends its visitors to {words['realm']!r} to log in: no password goes there")
        query = urllib.parse.urlencode({"service": words.get("service", ""), "account": username})
        status, _headers = _response(opener, f"{words['realm']}?{query}", basic)
    else:
        status, _headers = _response(opener, f"{url}/v2/", basic)
    _require_working(url, status)
    if status != 200:
        raise RegistryError(f"{url} does not accept the account {username} (HTTP {status})")


def _require_working(url: str, status: int) -> None:
    """Raises RegistryUnreachableError where it answers that it cannot answer now: that says nothing of an account."""
    # A busy registry must not make a correct account look wrong.
    if status == 429 or status >= 500:
        raise RegistryUnreachableError(f"{url} cannot answer now (HTTP {status})")


def _response(opener: urllib.request.OpenerDirector, address: str, authorization: str) -> tuple[int, dict[str, str]]:
    headers = {"Authorization": authorization} if authorization else {}
    try:
        with opener.open(urllib.request.Request(address, headers=headers), timeout=ANSWER_S) as answer:
            return answer.status, _lower(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, _lower(error.headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise silence(address, error) from error


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _for_architecture(manifests: Any, architecture: str) -> Optional[str]:
    for entry in manifests if isinstance(manifests, list) else []:
        platform = entry.get("platform") if isinstance(entry, Mapping) else None
        wanted = ("linux", architecture)
        if isinstance(platform, Mapping) and (platform.get("os"), platform.get("architecture")) == wanted:
            return str(entry.get("digest"))
    return None


def _refusal(error: urllib.error.HTTPError, path: str) -> str:
    words = {
        401: "does not accept this machine's login",
        403: "does not let this machine in",
        404: f"has no {path}",
        429: "was asked too often: its upstream limits the number of pulls",
        503: "does not reach its upstream, or is not up yet",
    }
    # An error page may be long, and its beginning says enough.
    reason = error.read(300).decode(errors="replace").strip()
    return f"{words.get(error.code, 'refuses')} (HTTP {error.code}{': ' + reason if reason else ''})"


def silence(url: str, error: BaseException) -> RegistryError:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return RegistryError(f"{url}: its certificate is not one that this machine trusts: {reason.verify_message}")
    if isinstance(reason, ssl.SSLError) and reason.reason in NO_TLS:
        return WithoutTlsError(f"{url} answers without TLS")
    return RegistryUnreachableError(f"{url} does not answer: {reason}")
