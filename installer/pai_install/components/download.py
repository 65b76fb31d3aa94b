"""Fetching over HTTP: resumable, atomic, verified by checksum."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pai_install.components.access import ANYBODY, Access, answered, refused, requested_pause_s
from pai_install.components.connect import send
from pai_install.components.progress import Progress, Throttle, silent
from pai_install.components.store import sha256_of
from pai_install.errors import PaiError
from pai_install.system.refusals import network_reason

ATTEMPTS = 4
CHUNK = 1 << 20
LARGEST = 2 << 30  # bytes; the largest component has 400 MB
# A download may take this long and one second more for so many bytes that came.
HEAD_START_S = 60.0
SLOWEST = 8 << 10


class _TooLongError(PaiError):
    """More comes than was asked for."""


def fetch_bytes(
    url: str,
    *,
    access: Access = ANYBODY,
    headers: Mapping[str, str] | None = None,
    limit: int = 16 << 20,
    progress: Progress = silent,
) -> bytes:
    """Returns a small document. headers: in addition to those of `access`.

    Raises PaiError if the download fails or is longer than `limit` bytes.
    """
    try:
        with open_url(url, access=access, headers=headers, progress=progress) as response:
            return b"".join(blocks(response, url, limit))
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            raise
        raise PaiError(
            f"cannot fetch {url}: the transfer was interrupted: {network_reason(error)}",
            code="download-interrupted",
            remedy="repeat the command",
        ) from error


def blocks(response: http.client.HTTPResponse, url: str, limit: int = LARGEST) -> Iterator[bytes]:
    """The content as it comes. Raises PaiError when it is longer than `limit`, OSError when it hardly comes at all."""
    began, done = time.monotonic(), 0
    # read1 returns what has come. read would wait for a whole block, and with it the time limit.
    while block := response.read1(CHUNK):
        done += len(block)
        _check_length(url, done, limit)
        if time.monotonic() - began > HEAD_START_S + done / SLOWEST:
            raise TimeoutError(f"slower than {SLOWEST} bytes a second")
        yield block


def _check_length(url: str, length: int, limit: int) -> None:
    if length > limit:
        raise _TooLongError(
            f"cannot use {url}: it is longer than {limit} bytes",
            code="download-too-long",
            remedy="check the address, and choose another component source",
        )


def open_url(
    url: str,
    *,
    access: Access = ANYBODY,
    headers: Mapping[str, str] | None = None,
    schemes: Sequence[str] = ("https", "http"),
    progress: Progress = silent,
) -> http.client.HTTPResponse:
    """Returns an open response to GET. Environment proxies and certificates are used.

    Retries on request of the server (429 or 503 with Retry-After), for at most `access.waits_s`. Raises PaiError with
    the url and the message of server or network. Status 401 raises urllib's HTTPError, so that the caller can log in.
    """
    if not url.startswith(tuple(f"{scheme}://" for scheme in schemes)):
        raise PaiError(
            f"cannot fetch {url}: the scheme is not supported",
            code="download-url-invalid",
            remedy="write an address with https:// or http://",
        )
    waited_s = 0.0
    while True:
        try:
            return _send(url, access, headers or {})
        except urllib.error.HTTPError as error:
            if error.code == 401:
                raise
            pause_s = requested_pause_s(error)
            if pause_s is None or waited_s + pause_s > access.waits_s:
                raise refused(url, error) from error
            progress(f"{urllib.parse.urlsplit(url).hostname} asks to wait: {pause_s:.0f} s")
            time.sleep(pause_s)
            # A server that asks for a pause of 0 s must not be asked without end.
            waited_s += max(pause_s, 1.0)
        except (OSError, http.client.HTTPException) as error:
            raise PaiError(
                f"cannot reach {url}: {network_reason(error)}",
                code="server-unreachable",
                remedy="check network, name resolution, and proxy, or choose another component source",
            ) from error


def _send(url: str, access: Access, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    request = urllib.request.Request(url)  # noqa: S310 - the caller has looked at the scheme
    for name, value in {**headers, **access.headers}.items():
        # a token is for this server, not for the storage it redirects to, which may refuse a request with one
        add = request.add_unredirected_header if name == "Authorization" else request.add_header
        add(name, value)
    return send(request, access.timeout_s, access.trust)


def download(
    url: str,
    target: Path,
    sha256: str,
    progress: Progress,
    *,
    access: Access = ANYBODY,
    limit: int = LARGEST,
) -> Path:
    """Downloads `url` to `target` and verifies it. A correct existing file stays.

    access: parameters of its server, with new credentials after their expiry. limit: maximum bytes, a longer file is
    deleted.
    An interrupted download resumes. Raises PaiError if the content has another sha256 (it is deleted) or all attempts
    fail.
    """
    if target.is_file() and sha256_of(target) == sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            answered(access, lambda: _append(url, part, progress, access, limit))
            break
        except _TooLongError:
            part.unlink(missing_ok=True)
            raise
        except urllib.error.HTTPError as error:
            raise refused(url, error) from error
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS:
                raise PaiError(
                    f"cannot fetch {url}: the transfer was interrupted {ATTEMPTS} times: {network_reason(error)}",
                    code="download-retries-exhausted",
                    remedy="repeat the command to continue the download",
                ) from error
            time.sleep(attempt)
    seen = sha256_of(part)
    if seen != sha256:
        part.unlink()
        raise PaiError(
            f"cannot use {url}: its sha256 is {seen}, expected {sha256}",
            code="download-checksum-mismatch",
            remedy=(
                "check for a proxy or mirror that changes files, then repeat the command, or choose another"
                " component source"
            ),
        )
    part.replace(target)
    return target


def _append(url: str, part: Path, progress: Progress, access: Access, limit: int) -> None:
    """Appends the rest of a download to `part`. Starts over if the server cannot resume."""
    have = part.stat().st_size if part.exists() else 0
    wanted = {"Range": f"bytes={have}-"} if have else {}
    report = Throttle(progress)
    try:
        response = open_url(url, access=access, headers=wanted, progress=progress)
    except PaiError as error:
        cause = error.__cause__
        if have and isinstance(cause, urllib.error.HTTPError) and cause.code == 416:
            return  # nothing is missing; the checksum decides
        raise
    with response:
        # A server without ranges answers 200, and sends the file from its start.
        resumed = response.status == 206
        total = int(response.headers.get("Content-Length") or 0) + (have if resumed else 0)
        done = have if resumed else 0
        _check_length(url, max(total, done), limit)
        with part.open("ab" if resumed else "wb") as output:
            for block in blocks(response, url, limit - done):
                output.write(block)
                done += len(block)
                report(f"{url.rsplit('/', 1)[-1]}: {done >> 20} of {total >> 20} MB")
        # read1 does not notice that a connection ended early.
        if total and done < total:
            raise http.client.IncompleteRead(b"", total - done)


def first_byte(url: str, access: Access) -> None:
    """Requests the first byte of a file, with redirects. Raises PaiError if none arrives."""
    try:
        with answered(access, lambda: open_url(url, access=access, headers={"Range": "bytes=0-0"})) as response:
            response.read1(1)
    except urllib.error.HTTPError as error:
        raise refused(url, error) from error
    except (OSError, http.client.HTTPException) as error:
        raise PaiError(
            f"cannot fetch {url}: the transfer was interrupted: {network_reason(error)}",
            code="download-interrupted",
            remedy="repeat the command",
        ) from error


def digest_of(data: bytes) -> str:
    """ "sha256:..." of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
