"""Clients of the server under test, made by the official SDK from the agent cards the server publishes.

`A2AD_URL` names a running server, as `http://127.0.0.1:4242`. Nothing here starts or stops it. Tests that connect
run once for each binding; all bindings of an agent lead to the same tasks.
"""

import os

from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import httpx
import pytest

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import AgentInterface, Task, TransportProtocol
from talk import ask, say


Connect = Callable[..., Awaitable[Client]]
Begin = Callable[[str, str], Awaitable[Task]]

JSONRPC, REST, GRPC = TransportProtocol.jsonrpc, TransportProtocol.http_json, TransportProtocol.grpc


@pytest.fixture(scope='session')
def url() -> str:
    """The server's address, without a slash at the end."""
    return os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """A bounded HTTP client that ignores proxies of the environment: the server is on this machine."""
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        yield client


@pytest.fixture(params=[JSONRPC, REST, GRPC], ids=['jsonrpc', 'rest', 'grpc'])
def binding(request: pytest.FixtureRequest) -> TransportProtocol:
    return request.param


@pytest.fixture
async def connect(url: str, binding: TransportProtocol) -> AsyncIterator[Connect]:
    """Makes clients, each with connections of its own; all are closed when the test ends.

    `streaming=False` makes `send_message` a blocking send, `polling=True` with it one that returns at once.
    """
    opened: list[httpx.AsyncClient | grpc.aio.Channel] = []

    async def connect(agent: str, *, streaming: bool = True, polling: bool = False) -> Client:
        def channel(target: str) -> grpc.aio.Channel:
            opened.append(open_channel(target, agent))
            return opened[-1]

        http = httpx.AsyncClient(timeout=10, trust_env=False)
        opened.append(http)
        card = await A2ACardResolver(http, f'{url}/a2a/{agent}').get_agent_card()
        if binding == GRPC:
            card.additional_interfaces = [await grpc_interface(url, http)]
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=http,
            grpc_channel_factory=channel,
            supported_transports=[binding],
        )
        return await ClientFactory.connect(card, config)

    yield connect
    for each in opened:
        await (each.close() if isinstance(each, grpc.aio.Channel) else each.aclose())


@pytest.fixture
def begin(connect: Connect) -> Begin:
    """Makes a task and does not wait for its end."""

    async def begin(agent: str, text: str) -> Task:
        return await ask(await connect(agent, streaming=False, polling=True), say(text))

    return begin


async def grpc_interface(url: str, http: httpx.AsyncClient) -> AgentInterface:
    """Only the default agent's card names the address: clients of this version cannot tell agents apart by it."""
    card = await A2ACardResolver(http, url).get_agent_card()
    (interface,) = [i for i in card.additional_interfaces or [] if i.transport == GRPC]
    return interface


def open_channel(target: str, agent: str) -> grpc.aio.Channel:
    """A connection of its own.

    There is no path in gRPC, and no field for it in this version: who is meant is told beside the request.
    """
    options = [('grpc.use_local_subchannel_pool', 1)]
    interceptors = [AskAgent(agent), FollowAgent(agent)]
    return grpc.aio.insecure_channel(target, options=options, interceptors=interceptors)


class ToAgent:
    """Names the agent in every call."""

    def __init__(self, agent: str) -> None:
        self.agent = agent

    def named(self, details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), ('a2a-agent', self.agent))
        return details._replace(metadata=metadata)


class AskAgent(ToAgent, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, call, details, request):
        return await call(self.named(details), request)


class FollowAgent(ToAgent, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, call, details, request):
        return await call(self.named(details), request)
