"""Serves the explorer on this machine only."""

from __future__ import annotations

import socket
import webbrowser
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

from rooflines.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST: Final = "127.0.0.1"
_REFUSED: Final = 1008  # RFC 6455, section 7.4.1: a policy was violated
_BROWSER_AFTER_S: Final = 1.0
# The frame runs scripts and styles of its own and draws what it made itself; nothing else may be loaded.
_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' ws://{address}; worker-src 'self' blob:; frame-ancestors 'none'; "
    "base-uri 'self'; form-action 'self'"
)


def serve(port: int, *, browser: bool) -> None:
    """Serve the page until it is stopped.

    Args:
        port: 0 takes a free one.
        browser: whether to open it.

    Raises:
        InputError: marimo is not installed, or the port is taken.
    """
    try:
        import marimo as _  # noqa: F401 - whether it is there
        import uvicorn
    except ImportError:
        raise InputError(
            "the explorer needs marimo: run pip install 'rooflines[explore]', or in a checkout make install"
        ) from None
    listening = _listen(port)
    address = f"{HOST}:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(explorer_app(address), log_level="warning"))
    if browser:
        Timer(_BROWSER_AFTER_S, webbrowser.open, [f"http://{address}/"]).start()
    server.run(sockets=[listening])


def explorer_app(address: str) -> ASGIApp:
    """The explorer as a web application that answers to its own address alone.

    Args:
        address: host and port that it is reached by.
    """
    import marimo
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    page = marimo.create_asgi_app(quiet=True, include_code=False)
    page = page.with_app(path="", root=str(Path(__file__).with_name("app.py")))
    # A name that somebody else points at this machine is not answered.
    return TrustedHostMiddleware(_Guarded(page.build(), address), allowed_hosts=[HOST])


class _Guarded:
    """Says with every answer what a browser may load, and answers no page of another origin."""

    def __init__(self, app: ASGIApp, address: str) -> None:
        self._app, self._origin = app, f"http://{address}".encode()
        self._policy = _POLICY.format(address=address).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message["headers"], (b"content-security-policy", self._policy)],
                }
            await send(message)

        origin = dict(scope.get("headers", ())).get(b"origin", self._origin)
        if origin == self._origin:
            await self._app(scope, receive, with_policy)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _REFUSED})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"another origin"})


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"port {port} cannot be used ({error.strerror}): choose another with --port"
        ) from None
    return listening
