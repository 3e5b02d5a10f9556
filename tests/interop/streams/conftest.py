"""Clients of one version of the official SDK, and a separate server for tests that stop it.

`A2AD_URL` is the URL of a running server with a short keep-alive interval, such as `http://127.0.0.1:4242`.
`A2AD_PROGRAM` is the program and `A2AD_CONFIG` its configuration file, for tests that start another server.
`SDK_VERSION` is the version of the SDK that must be installed. Tests that connect run once for each HTTP binding of
that version.
"""

import importlib
import importlib.metadata
import os

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from server import Server
from wire import Wire


VERSION = os.environ['SDK_VERSION']
# The API of the SDK changed with each minor version; there is one adapter module for each.
SDK = importlib.import_module({'0.2': 'sdk02', '0.3': 'sdk03', '1.3': 'sdk1'}[VERSION.rpartition('.')[0]])

Connect = Callable[..., Awaitable[Any]]


def pytest_report_header() -> str:
    installed = importlib.metadata.version('a2a-sdk')
    assert installed == VERSION, f'SDK_VERSION is {VERSION}, installed is {installed}'
    return f'a2a-sdk {installed}'


@pytest.fixture(params=SDK.BINDINGS)
def binding(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Creates clients of the echo agent, each with its own connections; all are closed when the test ends."""
    opened: list[httpx.AsyncClient] = []

    async def connect(binding: str, url: str = os.environ['A2AD_URL']) -> Any:
        wire = Wire()
        http = httpx.AsyncClient(transport=wire)
        opened.append(http)
        client = await SDK.connect(http, f'{url.rstrip("/")}/a2a/echo', binding)
        client.wire = wire
        return client

    yield connect
    for http in opened:
        await http.aclose()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server for one test. Its log is printed if the test fails."""
    server = Server(os.environ['A2AD_PROGRAM'], os.environ['A2AD_CONFIG'], tmp_path)
    await server.start()
    yield server
    await server.kill()
    print(server.log.read_text())
