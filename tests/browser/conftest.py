"""A real browser, and what it is pointed at.

The browser is Debian's (`apt-get install chromium`), or the one that ROOFLINES_CHROMIUM names; axe-core comes from
npm (`npm install --prefix build/browser axe-core`), or lies where ROOFLINES_AXE says. With
ROOFLINES_REQUIRE_BROWSER set, as in continuous integration, a browser that is missing is a failure.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_S = 60.0


def missing(what):
    """Skip, or fail where a browser is required."""
    if os.environ.get("ROOFLINES_REQUIRE_BROWSER"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser():
    """Chromium, as one process for the tests of a module; its driver's event loop ends with them."""
    program = os.environ.get("ROOFLINES_CHROMIUM") or shutil.which("chromium")
    if program is None:
        missing("no chromium here: apt-get install chromium, or set ROOFLINES_CHROMIUM")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright here: pip install playwright")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe(root):
    """The text of axe-core."""
    file = Path(
        os.environ.get("ROOFLINES_AXE")
        or root / "build" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
    )
    if not file.is_file():
        missing(f"no axe-core at {file}: npm install --prefix build/browser axe-core, or set ROOFLINES_AXE")
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def explorer(browser):  # noqa: ARG001 - without a browser nothing is served
    """The address at which `rooflines explore` serves."""
    pytest.importorskip("marimo", reason="needs the extra [explore]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rooflines", "explore", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 - our own command
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and server.poll() is None:
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        assert server.poll() is None, server.stdout.read()
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


@pytest.fixture(scope="module")
def context(browser):
    """Pages of a module share what was loaded once."""
    shared = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True)
    yield shared
    shared.close()


@pytest.fixture
def page(context):
    """A page of its own, with what it asked for and complained about."""
    found = context.new_page()
    found.set_default_timeout(1000 * PATIENCE_S)
    found.asked, found.complaints = [], []
    found.on("request", lambda request: found.asked.append(request.url))
    found.on("websocket", lambda channel: found.asked.append(channel.url))
    found.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.on(
        "console",
        lambda message: found.complaints.append(message.text) if message.type == "error" else None,
    )
    yield found
    found.close()
