"""One WebSocket to the web page of a job."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.typing import Subprotocol

from pai_install.console.web_pages.headers import to_pod
from pai_install.console.web_pages.owned import PodPort

_LOG = logging.getLogger("pai_install.console")
# of a message, in both directions: a few wait in memory
MOST_MESSAGE = 4 * 1024 * 1024
# a notebook answers once its kernel runs
_CONNECT_S, _CLOSE_S = 30.0, 1.0
# of the client's own handshake
_HANDSHAKE = ("host", "origin", "user-agent", "x-forwarded-proto")
# what the browser is told: the visit is over, the pod does not answer
POLICY, UNAVAILABLE = 1008, 1014
# codes that an endpoint may send: https://www.rfc-editor.org/rfc/rfc6455#section-7.4
_NEVER_SENT = (1004, 1005, 1006, 1015)


async def relay(socket: WebSocket, page: PodPort, closed: asyncio.Event) -> None:
    """Passes messages on, until one side or the visit ends."""
    host = socket.headers["host"]
    raw = socket.scope["raw_path"].decode("ascii")
    query = socket.scope["query_string"].decode("ascii")
    sent = to_pod(socket.headers.items())
    headers = [
        (name, value)
        for name, value in sent
        if name.lower() not in _HANDSHAKE and not name.lower().startswith("sec-websocket-")
    ]
    try:
        # the address is the browser's, so that the program sees its own host name
        pod = await connect(
            f"ws://{host}{raw}{f'?{query}' if query else ''}",
            host=page.address,
            port=page.port,
            origin=socket.headers.get("origin"),  # type: ignore[arg-type] # a text
            subprotocols=[Subprotocol(word) for word in socket.scope.get("subprotocols", ())] or None,
            additional_headers=headers,
            user_agent_header=socket.headers.get("user-agent"),
            compression=None,
            proxy=None,
            open_timeout=_CONNECT_S,
            close_timeout=_CLOSE_S,
            max_size=MOST_MESSAGE,
            max_queue=1,
        )
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as error:
        _LOG.info("the web page at %s:%s takes no WebSocket: %s", page.address, page.port, type(error).__name__)
        await socket.close(UNAVAILABLE)
        return
    try:
        await socket.accept(pod.subprotocol)
        await _both_ways(socket, pod, closed)
    finally:
        await pod.close()


async def _both_ways(socket: WebSocket, pod: ClientConnection, closed: asyncio.Event) -> None:
    ways = [asyncio.create_task(_to_pod(socket, pod)), asyncio.create_task(_from_pod(socket, pod))]
    over = asyncio.create_task(closed.wait())
    try:
        done, _ = await asyncio.wait([*ways, over], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (*ways, over):
            task.cancel()
        results = await asyncio.gather(*ways, over, return_exceptions=True)
    for found in results[:2]:
        if isinstance(found, Exception) and not isinstance(found, ConnectionClosed | WebSocketDisconnect):
            raise found
    if over in done:
        await end(socket, POLICY)
    elif ways[1] in done:
        code = pod.close_code or UNAVAILABLE
        await end(socket, UNAVAILABLE if code in _NEVER_SENT else code)


async def end(socket: WebSocket, code: int, reason: str = "") -> None:
    """Closes a socket, unless its client is gone."""
    with suppress(WebSocketDisconnect):
        await socket.close(code, reason)


async def _to_pod(socket: WebSocket, pod: ClientConnection) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        content = message.get("bytes")
        await pod.send(content if content is not None else message["text"])


async def _from_pod(socket: WebSocket, pod: ClientConnection) -> None:
    async for message in pod:
        if isinstance(message, str):
            await socket.send_text(message)
        else:
            await socket.send_bytes(message)
