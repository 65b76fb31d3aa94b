"""Use case: the SSH server in a job, over the console, for OpenSSH's ProxyCommand."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, FilePath, field_validator

from pai_install.app.base import AppContext
from pai_install.errors import ExitCode, PaiError
from pai_install.registry.identity import read_identity
from pai_install.site.console import console_of
from pai_install.site.services.console import WEB_PORT
from pai_install.system.parameters import Parameter
from pai_install.system.plain import plain_text

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_PIECE = 64 * 1024
_MOST_PIECE = 1024 * 1024
_MOST_TOKEN = 32 * 1024
_MOST_REASON = 400
# for the last words of a reader that saw the end
_LAST_S = 2.0


class ConnectJob(BaseModel):
    """Names a job of the owner of a token. NAME may be USER~NAME."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    token_file: Annotated[FilePath, Parameter(metavar="FILE")] = Field(description="File with your token of the API.")
    console: Annotated[str, Parameter(metavar="URL", default="the site's")] = Field(
        default="", description="Address of the console for web pages of jobs."
    )
    authority: Annotated[FilePath | None, Parameter(metavar="FILE", default="the site's, else those of this host")] = (
        Field(default=None, description="Certificates of the authority of the console (PEM).")
    )

    @field_validator("console")
    @classmethod
    def is_secure(cls, value: str) -> str:
        """Raises ValueError for an address without TLS: the token would be readable."""
        parts = urlsplit(value)
        if value and (parts.scheme != "https" or not parts.hostname or parts.path not in {"", "/"}):
            raise ValueError(f"cannot use {value[:200]!r} as the console: write https://HOST or https://HOST:PORT")
        return value


@dataclass(frozen=True)
class _Console:
    """Where the console listens: these addresses, in turn."""

    origins: tuple[str, ...]
    trust: ssl.SSLContext


def connect_job(app: AppContext, request: ConnectJob, source: int, sink: int) -> None:
    """Connects two file descriptors with the SSH server of a job, until one side ends. Raises PaiError."""
    token = _token(request.token_file)
    asyncio.run(_connected(_console(app, request), request.name, token, (source, sink)))


def _console(app: AppContext, request: ConnectJob) -> _Console:
    if request.console:
        parts = urlsplit(request.console)
        return _Console((f"{parts.hostname}:{parts.port or WEB_PORT}",), _trust(request.authority, ""))
    console = console_of(app.site)
    if console is None or not console.web_port:
        raise PaiError(
            f"cannot connect to {request.name}: the site opens no ports of jobs",
            code="web-pages-closed",
            remedy="remove console: false and group_isolation: false",
            exit_code=ExitCode.USAGE,
        )
    identity = None if console.certificate else read_identity(app.state.registry)
    pem = "".join(one.certificate for one in identity.authorities) if identity is not None else ""
    names = tuple(dict.fromkeys((console.names[0], *(machine.hostip for machine in app.site.control_planes))))
    return _Console(tuple(f"{name}:{console.web_port}" for name in names), _trust(request.authority, pem))


def _trust(authority: Path | None, pem: str) -> ssl.SSLContext:
    """Trusts one authority, or those of this host where there is none."""
    try:
        return ssl.create_default_context(cafile=authority, cadata=pem or None)
    except (OSError, ssl.SSLError) as error:
        raise PaiError(
            f"cannot read the authority {authority}: {error}",
            code="authority-unreadable",
            remedy="write the certificates of the authority of the console into it (PEM)",
            exit_code=ExitCode.USAGE,
        ) from error


def _token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = file.read(_MOST_TOKEN + 1).strip()
    except OSError as error:
        found, why = b"", error.strerror or "it is not readable"
    else:
        why = "it has no token" if len(found.split()) != 1 or len(found) > _MOST_TOKEN or not found.isascii() else ""
    if why:
        raise PaiError(
            f"cannot read {path}: {why}",
            code="token-file-unreadable",
            remedy="create a token on the page Account of the console, and write it into the file",
            exit_code=ExitCode.USAGE,
        )
    return found.decode()


async def _connected(console: _Console, name: str, token: str, ends: tuple[int, int]) -> None:
    from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - no other verb needs the library

    async with await _opened(console, name, token) as socket:
        try:
            await _both_ways(socket, *ends)
        except BrokenPipeError:
            return  # ssh ended
        except ConnectionClosed as error:
            reason = plain_text(error.rcvd.reason if error.rcvd is not None else "")
            raise PaiError(
                f"cannot stay connected to {name}: {reason or 'the console closed the connection'}",
                code="job-connection-lost",
                remedy="run job show to see the state of the job",
            ) from error


async def _opened(console: _Console, name: str, token: str) -> ClientConnection:
    """Tries the addresses of the console in turn. Raises PaiError."""
    from websockets.asyncio.client import connect  # noqa: PLC0415
    from websockets.exceptions import InvalidHandshake, InvalidStatus  # noqa: PLC0415

    failures: list[str] = []
    for origin in console.origins:
        try:
            return await connect(
                f"wss://{origin}/connect/{quote(name, safe='~')}",
                ssl=console.trust,
                additional_headers={"Authorization": f"Bearer {token}"},
                compression=None,
                proxy=None,
                max_size=_MOST_PIECE,
            )
        except InvalidStatus as error:
            raise _refused(name, error.response.status_code, bytes(error.response.body or b"")) from error
        except (OSError, InvalidHandshake, TimeoutError) as error:
            failures.append(f"{origin}: {plain_text(str(error)) or type(error).__name__}")
    raise PaiError(
        f"cannot reach the console for {name}",
        code="console-unreachable",
        details="\n".join(failures),
        remedy="check the address of the console and the network",
        exit_code=ExitCode.UNREACHABLE,
    )


def _refused(name: str, status: int, body: bytes) -> PaiError:
    why = plain_text(body[:_MOST_REASON].decode(errors="replace")).strip()
    return PaiError(
        f"cannot connect to {name}: {why or f'the console answers {status}'}",
        code="job-connection-refused",
        remedy="check the name, the token, and the label pai-install/ssh-port of your job",
    )


async def _both_ways(socket: ClientConnection, source: int, sink: int) -> None:
    """Passes bytes on. A thread reads, because a terminal or a file cannot wait in the loop."""
    ended = asyncio.Event()
    words = (socket, source, asyncio.get_running_loop(), ended)
    threading.Thread(target=_send_all, args=words, name="input", daemon=True).start()
    async for message in socket:
        await asyncio.to_thread(_write_all, sink, message.encode() if isinstance(message, str) else message)
    _end(sink)
    # ssh would fail in its last write, and lose the exit code of the command
    with suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), _LAST_S)


def _send_all(socket: ClientConnection, source: int, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Sends the input until its end. A slow console slows the reader."""
    from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

    # the loop ends before a reader that waits
    with suppress(OSError, RuntimeError):
        while piece := os.read(source, _PIECE):
            with suppress(ConnectionClosed):
                asyncio.run_coroutine_threadsafe(socket.send(piece), loop).result()
        loop.call_soon_threadsafe(ended.set)
        asyncio.run_coroutine_threadsafe(socket.close(), loop).result()


def _end(sink: int) -> None:
    """Lets the reader of the output see its end, while this process goes on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sink)
    os.close(nowhere)


def _write_all(sink: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(sink, left) :]
