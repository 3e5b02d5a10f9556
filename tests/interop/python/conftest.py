"""Clients of the server under test, which the official SDK creates from the agent cards of the server.

`A2AD_URL` is the URL of a running server, such as `http://127.0.0.1:4242`. Nothing here starts or stops it. Tests
that connect run once for each binding; an agent has the same tasks in all of its bindings.
"""

import os

from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import httpx
import pytest

from a2a.client import Client, ClientConfig, create_client
from a2a.utils.constants import TransportProtocol


Connect = Callable[..., Awaitable[Client]]

BINDINGS = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON, TransportProtocol.GRPC]


@pytest.fixture(scope='session')
def url() -> str:
    """The server's URL, without a trailing slash."""
    return os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client with a timeout. It ignores proxy variables: the server is on this machine."""
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        yield client


@pytest.fixture(params=BINDINGS, ids=['jsonrpc', 'rest', 'grpc'])
def binding(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def connect(url: str, binding: str) -> AsyncIterator[Connect]:
    """Creates clients, each with its own connections; all are closed when the test ends.

    With `streaming=False`, `send_message` is a blocking send; with `polling=True` in addition, a non-blocking one.
    `binding` replaces the binding that the test runs with.
    """
    opened: list[Client | httpx.AsyncClient] = []

    async def connect(
        agent: str, *, streaming: bool = True, polling: bool = False, binding: str = binding
    ) -> Client:
        http = httpx.AsyncClient(timeout=10, trust_env=False)
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=http,
            grpc_channel_factory=channel,
            supported_protocol_bindings=[binding],
        )
        client = await create_client(f'{url}/a2a/{agent}', config)
        opened.extend([client, http])
        return client

    yield connect
    for each in opened:
        await (each.close() if isinstance(each, Client) else each.aclose())


def channel(target: str) -> grpc.aio.Channel:
    """A channel that shares no connection with others."""
    options = [('grpc.use_local_subchannel_pool', 1)]
    return grpc.aio.insecure_channel(target, options=options)
