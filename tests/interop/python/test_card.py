"""The SDK resolves each agent card, and its clients reach the right agent."""

import httpx
import pytest

from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.helpers import get_artifact_text
from a2a.types import AgentCard, AgentInterface, GetExtendedAgentCardRequest
from a2a.utils.constants import TransportProtocol
from a2a.utils.errors import ExtendedAgentCardNotConfiguredError

from conftest import Connect, channel
from helpers import send, user_message


AGENTS = ['currency', 'echo', 'approver', 'slow-writer']


def interface(card: AgentCard, binding: str) -> AgentInterface:
    """The only interface on the card for this binding in protocol version 1.0."""
    (found,) = [i for i in card.supported_interfaces if (i.protocol_binding, i.protocol_version) == (binding, '1.0')]
    return found


@pytest.mark.parametrize('agent', AGENTS)
async def test_each_agent_has_a_card_with_its_urls(url: str, http: httpx.AsyncClient, agent: str) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/{agent}').get_agent_card()
    for binding in (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON):
        assert interface(card, binding).url == f'{url}/a2a/{agent}'
    # A gRPC address has no path: the tenant in each request names the agent.
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


async def test_agents_have_different_cards(url: str, http: httpx.AsyncClient) -> None:
    cards = [await A2ACardResolver(http, f'{url}/a2a/{agent}').get_agent_card() for agent in AGENTS]
    assert len({card.name for card in cards}) == len(AGENTS)


async def test_root_card_leads_to_the_default_agent(
    url: str, http: httpx.AsyncClient, binding: str
) -> None:
    config = ClientConfig(
        streaming=False,
        httpx_client=http,
        grpc_channel_factory=channel,
        supported_protocol_bindings=[binding],
    )
    async with await create_client(url, config) as client:
        task = await send(client, user_message('echo by the root'))
    assert [get_artifact_text(artifact) for artifact in task.artifacts] == ['echo by the root']


async def test_extended_card_has_more_skills(connect: Connect) -> None:
    client = await connect('club')
    extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    assert [skill.id for skill in extended.skills] == ['echo', 'approver']


async def test_public_card_omits_the_extended_skills(url: str, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/club').get_agent_card()
    assert card.capabilities.extended_agent_card
    assert [skill.id for skill in card.skills] == ['echo']


async def test_missing_extended_card_is_rejected_with_its_own_error(connect: Connect) -> None:
    client = await connect('promise')
    with pytest.raises(ExtendedAgentCardNotConfiguredError):
        await client.get_extended_agent_card(GetExtendedAgentCardRequest())
