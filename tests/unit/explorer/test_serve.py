from __future__ import annotations

import asyncio
import socket

import pytest

pytest.importorskip("marimo", reason="needs the extra [explore]")

from rooflines.errors import InputError
from rooflines.explorer.serve import HOST, explorer_app, serve

ADDRESS = f"{HOST}:2718"


@pytest.fixture(scope="module")
def app():
    return explorer_app(ADDRESS)


def ask(app, *, kind="http", path="/", host=ADDRESS, origin=None):
    """What the application sends to one request."""
    headers = [(b"host", host.encode())] + ([(b"origin", origin.encode())] if origin else [])
    scope = {
        "type": kind,
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http" if kind == "http" else "ws",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "server": (HOST, 2718),
        "client": (HOST, 50000),
        "subprotocols": [],
    }
    sent = []

    async def receive():
        return {"type": "http.request"} if kind == "http" else {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    asyncio.run(asyncio.wait_for(app(scope, receive, send), 30))
    return sent


def test_every_answer_says_that_nothing_may_come_from_outside(app):
    sent = ask(app)
    assert sent[0]["status"] == 200
    policy = dict(sent[0]["headers"])[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'self'")
    assert f"connect-src 'self' ws://{ADDRESS};" in policy
    assert "http" not in policy
    assert "*" not in policy
    body = b"".join(message.get("body", b"") for message in sent[1:])
    assert b"rooflines explorer" in body


def test_another_name_for_this_machine_is_not_answered(app):
    assert ask(app, host="evil.example:2718")[0]["status"] == 400


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"http://{HOST}:9999"])
def test_pages_of_other_origins_are_refused(app, origin):
    assert ask(app, origin=origin)[0]["status"] == 403
    assert ask(app, kind="websocket", path="/ws", origin=origin)[0] == {
        "type": "websocket.close",
        "code": 1008,
    }


def test_its_own_origin_is_answered(app):
    assert ask(app, origin=f"http://{ADDRESS}")[0]["status"] == 200


def test_a_port_that_is_taken_is_said_so():
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} cannot be used .* --port"):
            serve(port, browser=False)
