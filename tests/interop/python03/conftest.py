"""Clients of the server under test, which the official SDK creates from the agent cards of the server.

`A2AD_URL` is the URL of a running server, such as `http://127.0.0.1:4242`. Nothing here starts or stops it. Tests
that connect run once for each binding; an agent has the same tasks in all of its bindings.
"""

import os

from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import httpx
import pytest

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import AgentInterface, Task, TransportProtocol
from helpers import send, user_message


Connect = Callable[..., Awaitable[Client]]
StartTask = Callable[[str, str], Awaitable[Task]]

JSONRPC, REST, GRPC = TransportProtocol.jsonrpc, TransportProtocol.http_json, TransportProtocol.grpc


@pytest.fixture(scope='session')
def url() -> str:
    """The server's URL, without a trailing slash."""
    return os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client with a timeout. It ignores proxy variables: the server is on this machine."""
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        yield client


@pytest.fixture(params=[JSONRPC, REST, GRPC], ids=['jsonrpc', 'rest', 'grpc'])
def binding(request: pytest.FixtureRequest) -> TransportProtocol:
    return request.param


@pytest.fixture
async def connect(url: str, binding: TransportProtocol) -> AsyncIterator[Connect]:
    """Creates clients, each with its own connections; all are closed when the test ends.

    With `streaming=False`, `send_message` is a blocking send; with `polling=True` in addition, a non-blocking one.
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
def start_task(connect: Connect) -> StartTask:
    """Creates a task with a non-blocking send."""

    async def start_task(agent: str, text: str) -> Task:
        return await send(await connect(agent, streaming=False, polling=True), user_message(text))

    return start_task


async def grpc_interface(url: str, http: httpx.AsyncClient) -> AgentInterface:
    """Only the default agent's card has the gRPC address, because in this version the address does not identify an
    agent."""
    card = await A2ACardResolver(http, url).get_agent_card()
    (interface,) = [i for i in card.additional_interfaces or [] if i.transport == GRPC]
    return interface


def open_channel(target: str, agent: str) -> grpc.aio.Channel:
    """A channel that shares no connection with others.

    A gRPC address has no path, and this version has no request field for the agent, so the agent is named in the
    metadata of each call.
    """
    options = [('grpc.use_local_subchannel_pool', 1)]
    interceptors = [UnaryAgentMetadata(agent), StreamAgentMetadata(agent)]
    return grpc.aio.insecure_channel(target, options=options, interceptors=interceptors)


class AgentMetadata:
    """Adds the agent to the metadata of every call."""

    def __init__(self, agent: str) -> None:
        self.agent = agent

    def with_agent(self, details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
        metadata = grpc.aio.Metadata(*(details.metadata or ()), ('a2a-agent', self.agent))
        return details._replace(metadata=metadata)


class UnaryAgentMetadata(AgentMetadata, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, call, details, request):
        return await call(self.with_agent(details), request)


class StreamAgentMetadata(AgentMetadata, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, call, details, request):
        return await call(self.with_agent(details), request)
