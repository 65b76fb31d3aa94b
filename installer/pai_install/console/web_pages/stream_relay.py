"""One WebSocket of bytes to a port of a pod: each binary message is a piece of the stream, as OpenSSH writes it."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus

from starlette.websockets import WebSocket, WebSocketDisconnect

from pai_install.console.errors import RestError
from pai_install.console.web_pages.owned import PodPort
from pai_install.console.web_pages.socket_relay import POLICY, UNAVAILABLE, end

_LOG = logging.getLogger("pai_install.console")
# of a message of the client, and of a read at the pod: one of each waits in memory
MOST_PIECE, _READ = 1024 * 1024, 64 * 1024
_CONNECT_S, _CLOSE_S = 5.0, 1.0
_UNREADY = "the SSH server of the job does not answer: it starts, or it has ended"
# https://www.rfc-editor.org/rfc/rfc6455#section-7.4: the stream ended, no binary message, a message above the limit
_DONE, _UNSUPPORTED, _TOO_BIG = 1000, 1003, 1009


async def relay_stream(socket: WebSocket, pod: PodPort, closed: asyncio.Event) -> None:
    """Passes bytes on, until one side or the visit ends. Raises RestError for a server that does not answer."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(pod.address, pod.port, limit=_READ)
    except (OSError, TimeoutError) as error:
        _LOG.info("the SSH server at %s:%s does not answer: %s", pod.address, pod.port, type(error).__name__)
        raise RestError(HTTPStatus.BAD_GATEWAY, "SshServerError", _UNREADY) from error
    try:
        await socket.accept()
        await _both_ways(socket, reader, writer, closed)
    finally:
        await _ended(writer)


async def _ended(writer: asyncio.StreamWriter) -> None:
    """Gives the pod a moment to take the rest."""
    writer.close()
    try:
        async with asyncio.timeout(_CLOSE_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()


async def _both_ways(
    socket: WebSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, closed: asyncio.Event
) -> None:
    to_pod = asyncio.create_task(_to_pod(socket, writer))
    from_pod = asyncio.create_task(_from_pod(socket, reader))
    over = asyncio.create_task(closed.wait())
    tasks = (to_pod, from_pod, over)
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for found in results[:2]:
        if isinstance(found, Exception) and not isinstance(found, OSError | WebSocketDisconnect):
            raise found
    if over in done:
        await end(socket, POLICY, "the job or your right to it ended")
    elif from_pod in done:
        await end(socket, _DONE)
    elif isinstance(results[0], int):
        await end(socket, results[0])
    elif isinstance(results[0], OSError):
        await end(socket, UNAVAILABLE, "the SSH server is gone")


async def _to_pod(socket: WebSocket, writer: asyncio.StreamWriter) -> int | None:
    """Returns the code with which the socket has to close, None after a client that left."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        piece = message.get("bytes")
        if piece is None:
            return _UNSUPPORTED
        if len(piece) > MOST_PIECE:
            return _TOO_BIG
        writer.write(piece)
        # a slow pod slows the client, and fills no memory
        await writer.drain()


async def _from_pod(socket: WebSocket, reader: asyncio.StreamReader) -> None:
    while piece := await reader.read(_READ):
        await socket.send_bytes(piece)
