"""The SDK resolves each agent card, and its clients reach the right agent."""

import grpc
import httpx
import pytest

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import TransportProtocol
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, PREV_AGENT_CARD_WELL_KNOWN_PATH

from conftest import Connect
from helpers import ProtocolError, expect_error, send, texts, user_message


AGENTS = ['currency', 'echo', 'approver', 'slow-writer']
PATHS = [AGENT_CARD_WELL_KNOWN_PATH, PREV_AGENT_CARD_WELL_KNOWN_PATH]


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('agent', AGENTS)
async def test_each_agent_has_a_card_with_its_urls(
    url: str, http: httpx.AsyncClient, agent: str, path: str
) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/{agent}', path).get_agent_card()
    assert card.url == f'{url}/a2a/{agent}'
    assert card.preferred_transport == TransportProtocol.jsonrpc
    others = {interface.transport: interface.url for interface in card.additional_interfaces or []}
    assert others == {TransportProtocol.http_json: f'{url}/a2a/{agent}'}
    assert card.protocol_version == '0.3.0'
    assert card.name and card.description and card.version
    assert card.capabilities.streaming
    assert not card.capabilities.push_notifications
    assert 'text/plain' in card.default_input_modes
    assert 'text/plain' in card.default_output_modes
    assert card.skills
    for skill in card.skills:
        assert skill.id and skill.name and skill.description and skill.tags


@pytest.mark.parametrize('path', PATHS)
async def test_root_card_leads_to_the_default_agent(
    url: str, http: httpx.AsyncClient, path: str, binding: TransportProtocol
) -> None:
    card = await A2ACardResolver(http, url, path).get_agent_card()
    assert card.url.startswith(url)
    config = ClientConfig(
        streaming=False,
        httpx_client=http,
        grpc_channel_factory=grpc.aio.insecure_channel,
        supported_transports=[binding],
    )
    async with ClientFactory(config).create(card) as client:
        task = await send(client, user_message('echo by the root'))
    assert list(texts(task).values()) == ['echo by the root']


async def test_extended_card_has_more_skills(connect: Connect) -> None:
    client = await connect('club')
    extended = await client.get_card()
    assert [skill.id for skill in extended.skills] == ['echo', 'approver']


async def test_public_card_omits_the_extended_skills(url: str, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/club').get_agent_card()
    assert card.supports_authenticated_extended_card
    assert [skill.id for skill in card.skills] == ['echo']


async def test_missing_extended_card_is_rejected_with_its_own_error(connect: Connect) -> None:
    client = await connect('promise')
    with expect_error(ProtocolError.NO_EXTENDED_CARD):
        await client.get_card()
