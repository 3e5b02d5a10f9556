"""The cards the SDK resolves lead its clients to the right agents."""

import httpx
import pytest

from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.helpers import get_artifact_text
from a2a.types import AgentCard, AgentInterface, GetExtendedAgentCardRequest
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import ExtendedAgentCardNotConfiguredError

from conftest import Connect, channel
from talk import ask, say


AGENTS = ['currency', 'echo', 'approver', 'slow-writer']


def interface(card: AgentCard, binding: str) -> AgentInterface:
    """The one interface a client of this binding and of version 1.0 can use."""
    (found,) = [i for i in card.supported_interfaces if (i.protocol_binding, i.protocol_version) == (binding, '1.0')]
    return found


@pytest.mark.parametrize('agent', AGENTS)
async def test_each_agent_has_a_card_that_leads_to_it(url: str, http: httpx.AsyncClient, agent: str) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/{agent}').get_agent_card()
    for binding in (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON):
        assert interface(card, binding).url == f'{url}/a2a/{agent}'
    # There is no path in gRPC: who is meant is told in every request.
    grpc = interface(card, TransportProtocol.GRPC)
    assert (grpc.url, grpc.tenant) == (url.removeprefix('http://'), f'default/{agent}')
    assert card.name and card.description and card.version
    assert card.capabilities.streaming
    assert not card.capabilities.push_notifications
    assert 'text/plain' in card.default_input_modes
    assert 'text/plain' in card.default_output_modes
    assert card.skills
    for skill in card.skills:
        assert skill.id and skill.name and skill.description and skill.tags


async def test_cards_differ(url: str, http: httpx.AsyncClient) -> None:
    cards = [await A2ACardResolver(http, f'{url}/a2a/{agent}').get_agent_card() for agent in AGENTS]
    assert len({card.name for card in cards}) == len(AGENTS)


async def test_the_default_agent_is_reached_by_the_card_at_the_root(
    url: str, http: httpx.AsyncClient, binding: str
) -> None:
    config = ClientConfig(
        streaming=False,
        httpx_client=http,
        grpc_channel_factory=channel,
        supported_protocol_bindings=[binding],
    )
    async with await create_client(url, config) as client:
        task = await ask(client, say('echo by the root'))
    assert [get_artifact_text(artifact) for artifact in task.artifacts] == ['echo by the root']


async def test_an_extended_card_shows_more(connect: Connect) -> None:
    client = await connect('club')
    seen = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    assert [skill.id for skill in seen.skills] == ['echo', 'approver']


async def test_an_extended_card_is_no_part_of_the_public_one(url: str, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/club').get_agent_card()
    assert card.capabilities.extended_agent_card
    assert [skill.id for skill in card.skills] == ['echo']


async def test_an_extended_card_that_is_not_there_is_refused_as_such(connect: Connect) -> None:
    client = await connect('promise')
    with pytest.raises(ExtendedAgentCardNotConfiguredError):
        await client.get_extended_agent_card(GetExtendedAgentCardRequest())
