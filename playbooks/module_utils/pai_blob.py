"""A client of Azure Blob Storage for the contents of the cache: HTTP requests signed with an account key.
Python 3.9.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from email.utils import formatdate
from typing import NamedTuple, Optional

from ansible.module_utils.pai_registry import RegistryError, RegistryUnreachableError, silence

VERSION = "2021-08-06"
ANSWER_S = 60
BLOCK = 8 << 20  # 50 000 of them make a blob: 400 GB
ENDPOINT = "registry.azure-endpoint"
NAME = "docker_cache_azure_account_name"
ACCESS_KEY = "docker_cache_azure_account_key"
CONTAINER = "docker_cache_azure_container_name"
# of a module: no_log for all of it would mask the account's name, too
AZURE_OPTIONS = {
    "account": {"type": "str", "default": ""},
    "access_key": {"type": "str", "default": "", "no_log": True},
    "container": {"type": "str", "default": ""},
    "endpoint": {"type": "str", "default": ""},
}
# CNCF distribution names Azure's own service so
AZURE = "https://{account}.blob.core.windows.net"


class BlobError(RegistryError):
    """The blob service refuses. key: the setting of the site that is at fault, or ""."""

    def __init__(self, text: str, key: str = "") -> None:
        super().__init__(text)
        self.key = key


class Account(NamedTuple):
    """A container in a storage account. access_key: base64. endpoint: URL of the service, or "" for Azure's own."""

    account: str
    access_key: str
    container: str
    endpoint: str = ""

    @property
    def service(self) -> str:
        """URL of the blob service, without a last slash."""
        return (self.endpoint or AZURE.format(account=self.account)).rstrip("/")


def account_of(settings: Mapping[str, str]) -> Account:
    """From a role's variable: account, access_key, container, endpoint."""
    return Account(*(str(settings.get(name) or "") for name in Account._fields))


def signature(account: Account, verb: str, address: str, headers: Mapping[str, str]) -> str:
    """The value of Authorization (Shared Key) for a request. Raises BlobError for a key that is not base64."""
    parts = urllib.parse.urlsplit(address)
    given = {name.lower(): value for name, value in headers.items()}
    length = given.get("content-length", "")
    words = [verb, *(given.get(name, "") for name in ("content-encoding", "content-language"))]
    # Since version 2015-02-21, Azure signs an empty text in place of a length of 0.
    words += ["" if length == "0" else length]
    # Azure computes the same text. The order of its lines is fixed, and a missing header is an empty line.
    words += [given.get(name, "") for name in ("content-md5", "content-type", "date", "if-modified-since")]
    words += [given.get(name, "") for name in ("if-match", "if-none-match", "if-unmodified-since", "range")]
    words += [f"{name}:{given[name]}" for name in sorted(given) if name.startswith("x-ms-")]
    # Azure signs the decoded parameters in the order of their names.
    query = sorted(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
    resource = f"/{account.account}{parts.path}" + "".join(f"\n{name}:{value}" for name, value in query)
    try:
        key = base64.b64decode(account.access_key, validate=True)
    except binascii.Error as error:
        raise BlobError("is not base64", ACCESS_KEY) from error
    mac = hmac.new(key, "\n".join([*words, resource]).encode(), hashlib.sha256)
    return f"SharedKey {account.account}:{base64.b64encode(mac.digest()).decode()}"


class Container:
    """Requests to one container. Names of blobs are paths without a slash before them."""

    def __init__(self, account: Account) -> None:
        self.account = account
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context())
        self.opener = urllib.request.build_opener(https)

    def require(self) -> None:
        """Raises BlobError if the service refuses the key or lacks the container, and RegistryUnreachableError."""
        self.request("GET", "", {"restype": "container"}).close()

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yields the name and the size in bytes of each blob with this name prefix."""
        marker = ""
        while True:
            query = {"restype": "container", "comp": "list", "prefix": prefix, "marker": marker}
            with self.request("GET", "", {name: value for name, value in query.items() if value}) as answer:
                page = ET.fromstring(answer.read())  # noqa: S314 - the site's own storage account
            for blob in page.iter("Blob"):
                yield blob.findtext("Name") or "", int(blob.findtext("Properties/Content-Length") or 0)
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return

    def read(self, name: str) -> Iterator[bytes]:
        """The content of a blob, in pieces."""
        with self.request("GET", name, {}) as answer:
            try:
                while piece := answer.read(1 << 20):
                    yield piece
            except (OSError, http.client.HTTPException) as error:
                raise silence(self.account.service, error) from error

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Creates or replaces a blob atomically. An exception from `pieces` leaves the old blob unchanged."""
        blocks: list[str] = []
        data = b""
        for piece in pieces:
            data += piece
            if len(data) >= BLOCK:
                blocks.append(self._block(name, len(blocks), data))
                data = b""
        # A small blob needs one request in place of three.
        if not blocks:
            self._put(name, {}, data, {"x-ms-blob-type": "BlockBlob"})
            return
        if data:
            blocks.append(self._block(name, len(blocks), data))
        listed = "".join(f"<Latest>{block}</Latest>" for block in blocks)
        text = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'
        self._put(name, {"comp": "blocklist"}, text.encode(), {})

    def _block(self, name: str, number: int, data: bytes) -> str:
        # All block names of a blob must have the same length.
        block = base64.b64encode(f"{number:08d}".encode()).decode()
        self._put(name, {"comp": "block", "blockid": block}, data, {})
        return block

    def _put(self, name: str, query: Mapping[str, str], data: bytes, headers: Mapping[str, str]) -> None:
        # urllib would give it a type of its own, which is signed too
        length = {"Content-Length": str(len(data)), "Content-Type": "application/octet-stream"}
        self.request("PUT", name, query, data, {**length, **headers}).close()

    def request(
        self,
        verb: str,
        name: str,
        query: Mapping[str, str],
        data: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> http.client.HTTPResponse:
        """The answer to a signed request. Raises BlobError, FileNotFoundError, RegistryUnreachableError."""
        path = f"/{self.account.container}" + (f"/{urllib.parse.quote(name)}" if name else "")
        address = self.account.service + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        # x-ms-date in place of Date, which a proxy may change.
        own = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION, **(headers or {})}
        own["Authorization"] = signature(self.account, verb, address, own)
        request = urllib.request.Request(address, data=data, headers=own, method=verb)
        try:
            return self.opener.open(request, timeout=ANSWER_S)  # type: ignore[no-any-return]  # urllib says Any
        except urllib.error.HTTPError as error:
            raise refusal(self.account, error) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise silence(self.account.service, error) from error


def refusal(account: Account, error: urllib.error.HTTPError) -> Exception:
    """The error for an error response, with a message for the admin. FileNotFoundError for a missing blob."""
    code = error.headers.get("x-ms-error-code") or ""
    reason = f"(HTTP {error.code}{': ' + code if code else ''})"
    service = account.service
    # The cache may drop content while it is copied, which is no fault of the account.
    if code == "BlobNotFound":
        return FileNotFoundError(f"{service} has no such blob")
    if error.code == 429 or error.code >= 500:
        return RegistryUnreachableError(f"{service} cannot answer now {reason}")
    wrong_key = (ACCESS_KEY, f"{service} does not accept it for the account {account.account}")
    meanings = {
        **dict.fromkeys(("AuthenticationFailed", "AuthorizationFailure", "InvalidAuthenticationInfo"), wrong_key),
        "ContainerNotFound": (CONTAINER, f"the account {account.account} has no container {account.container}"),
        "ResourceNotFound": (NAME, f"{service} knows no account {account.account}"),
        "": (ENDPOINT, f"{service} answers, but is no blob service"),
    }
    at_fault, text = meanings.get(code, (NAME, f"{service} refuses"))
    return BlobError(f"{text} {reason}", at_fault)


def wrong_account(settings: Mapping[str, str], places: Mapping[str, str]) -> str:
    """Returns why the cache could not use the container, with the key of the site's files, or "".

    places: setting -> FILE:LINE:COLUMN. No response is a problem too: the cache does not start without its container.
    """
    account = account_of(settings)
    try:
        Container(account).require()
    except RegistryUnreachableError as error:
        return place(ENDPOINT if account.endpoint else NAME, places) + str(error)
    except BlobError as error:
        return place(error.key, places) + str(error)
    return ""


def place(key: str, places: Mapping[str, str]) -> str:
    """FILE:LINE:COLUMN: KEY: , as far as it is known."""
    return "".join(f"{word}: " for word in (places.get(key, ""), key) if word)


def use_proxy(proxy: Mapping[str, object]) -> None:
    """Requests of this process go through the proxy: http, https, no_proxy."""
    names = {"http": "http_proxy", "https": "https_proxy", "no_proxy": "no_proxy"}
    os.environ.update({names[word]: str(value) for word, value in proxy.items() if word in names})
