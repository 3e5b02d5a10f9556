"""Clients of the server under test, made by the official SDK from the agent cards the server publishes.

`A2AD_URL` names a running server, as `http://127.0.0.1:4242`. Nothing here starts or stops it.
"""

import os

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from a2a.client import Client, ClientConfig, ClientFactory


Connect = Callable[..., Awaitable[Client]]


@pytest.fixture(scope='session')
def url() -> str:
    """The server's address, without a slash at the end."""
    return os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """A bounded HTTP client that ignores proxies of the environment: the server is on this machine."""
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        yield client


@pytest.fixture
async def connect(url: str) -> AsyncIterator[Connect]:
    """Makes clients, each with connections of its own; all are closed when the test ends.

    `streaming=False` makes `send_message` a blocking send, `polling=True` with it one that returns at once.
    """
    opened: list[httpx.AsyncClient] = []

    async def connect(agent: str, *, streaming: bool = True, polling: bool = False) -> Client:
        http = httpx.AsyncClient(timeout=10, trust_env=False)
        opened.append(http)
        config = ClientConfig(streaming=streaming, polling=polling, httpx_client=http)
        return await ClientFactory.connect(f'{url}/a2a/{agent}', config)

    yield connect
    for http in opened:
        await http.aclose()
