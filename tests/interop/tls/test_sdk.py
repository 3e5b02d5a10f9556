"""The official Python SDK over TLS and mutual TLS, in every binding."""

import ssl

from pathlib import Path

import grpc
import httpx
import pytest

from a2a.client import A2ACardResolver, Client, ClientConfig, create_client
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types import AgentCard, GetTaskRequest, Role, SendMessageRequest, Task
from a2a.utils.constants import TransportProtocol

from certificates import Authority, Pair
from conftest import Start


BINDINGS = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON, TransportProtocol.GRPC]


class Caller:
    """Connects clients of the SDK that trust an authority, with the certificate of a caller."""

    def __init__(self, ca: Path, pair: Pair | None) -> None:
        context = ssl.create_default_context(cafile=ca)
        if pair:
            context.load_cert_chain(pair.cert, pair.key)
        self.http = httpx.AsyncClient(verify=context, timeout=10, trust_env=False)
        self.grpc = grpc.ssl_channel_credentials(
            ca.read_bytes(),
            pair.key.read_bytes() if pair else None,
            pair.cert.read_bytes() if pair else None,
        )

    async def card(self, url: str) -> AgentCard:
        return await A2ACardResolver(self.http, url).get_agent_card()

    async def connect(self, card: AgentCard, binding: str) -> Client:
        config = ClientConfig(
            streaming=False,
            httpx_client=self.http,
            grpc_channel_factory=lambda url: grpc.aio.secure_channel(url, self.grpc),
            supported_protocol_bindings=[binding],
        )
        return await create_client(card, config)


async def send(client: Client) -> Task:
    request = SendMessageRequest(message=new_text_message('hello', role=Role.ROLE_USER))
    (response,) = [response async for response in client.send_message(request)]
    return response.task


@pytest.mark.parametrize('binding', BINDINGS)
async def test_calls_over_tls(start: Start, authority: Authority, binding: str) -> None:
    server, caller = start(), Caller(authority.cert, None)
    card = await caller.card(f'{server.url}/a2a/open')
    urls = [interface.url for interface in card.supported_interfaces if interface.protocol_binding != 'GRPC']
    assert urls and all(url.startswith(f'{server.url}/') for url in urls)
    async with await caller.connect(card, binding) as client:
        assert get_artifact_text((await send(client)).artifacts[0]) == 'hello'


@pytest.mark.parametrize('binding', BINDINGS)
async def test_the_certificate_is_the_caller(start: Start, authority: Authority, binding: str) -> None:
    server = start()
    alice = Caller(authority.cert, authority.sign('alice'))
    bob = Caller(authority.cert, authority.sign('bob', names='URI:spiffe://example/bob'))
    nobody = Caller(authority.cert, None)
    card = await nobody.card(f'{server.url}/a2a/closed')
    schemes = {scheme.WhichOneof('scheme') for scheme in card.security_schemes.values()}
    assert schemes == {'mtls_security_scheme'}
    async with (
        await alice.connect(card, binding) as one,
        await bob.connect(card, binding) as two,
        await nobody.connect(card, binding) as three,
    ):
        task = await send(one)
        assert get_artifact_text(task.artifacts[0]) == 'hello'
        assert (await one.get_task(GetTaskRequest(id=task.id))).id == task.id
        with pytest.raises(Exception, match='404|NotFound|not found'):
            await two.get_task(GetTaskRequest(id=task.id))
        with pytest.raises(Exception, match='401|UNAUTHENTICATED|requires a credential'):
            await send(three)
