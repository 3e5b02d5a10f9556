"""The cards the SDK resolves lead its clients to the right agents."""

import httpx
import pytest

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text
from a2a.types import AgentCard, AgentInterface

from talk import ask, say


AGENTS = ['currency', 'echo', 'approver', 'slow-writer']


def json_rpc_interface(card: AgentCard) -> AgentInterface:
    """The one interface a JSON-RPC client of version 1.0 can use."""
    (interface,) = [
        i for i in card.supported_interfaces if (i.protocol_binding, i.protocol_version) == ('JSONRPC', '1.0')
    ]
    return interface


@pytest.mark.parametrize('agent', AGENTS)
async def test_each_agent_has_a_card_that_leads_to_it(url: str, http: httpx.AsyncClient, agent: str) -> None:
    card = await A2ACardResolver(http, f'{url}/a2a/{agent}').get_agent_card()
    assert json_rpc_interface(card).url == f'{url}/a2a/{agent}'
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


async def test_the_default_agent_is_reached_by_the_card_at_the_root(url: str, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, url).get_agent_card()
    assert json_rpc_interface(card).url.startswith(url)
    client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)
    task = await ask(client, say('echo by the root'))
    assert [get_artifact_text(artifact) for artifact in task.artifacts] == ['echo by the root']
