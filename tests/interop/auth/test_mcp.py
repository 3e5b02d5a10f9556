"""The Python SDK of MCP with credentials, against agents that require them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from calls import Agents, Headers, api_key, bearer
from conftest import SECRET, Start
from tokens import PyJwt, claims, secret


pytestmark = pytest.mark.anyio

CONFIG = """
[server]
default_agent = "main"
[skills]
echo = { builtin = "echo" }
[agents]
main = { skills = ["echo"], auth = ["api-key"] }
tokens = { skills = ["echo"], auth = ["jwt"] }
"""

SESSION_ID = 'mcp-session-id'


@pytest.fixture(params=['2026-07-28', 'legacy', 'auto'])
def mode(request: pytest.FixtureRequest) -> str:
    """The revision of the client: the newest, the last with a handshake, or whichever it finds."""
    return request.param


@pytest.fixture
def server(start: Start) -> Agents:
    return start(CONFIG)


class Sent:
    """Records the sessions and the statuses of a client's HTTP responses."""

    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.statuses: list[int] = []

    async def record(self, response: httpx2.Response) -> None:
        self.statuses.append(response.status_code)
        if session := response.headers.get(SESSION_ID):
            self.sessions.add(session)


@asynccontextmanager
async def connect(url: str, headers: Headers, mode: str, sent: Sent | None = None) -> AsyncIterator[Client]:
    hooks = {'response': [(sent or Sent()).record]}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=10, event_hooks=hooks) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            yield client


async def test_tools_are_called_with_a_credential(server: Agents, mode: str) -> None:
    key = server.new_key(owner='alice')
    token = PyJwt().sign(claims(), secret(SECRET))
    for path, headers, agent in (
        ('/mcp', bearer(key), 'main'),
        ('/mcp', api_key(key), 'main'),
        ('/a2a/main/mcp', bearer(key), 'main'),
        ('/a2a/tokens/mcp', bearer(token), 'tokens'),
    ):
        async with connect(server.url + path, headers, mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ['echo']
            result = await client.call_tool('echo', {'message': 'hello'})
            assert result.content[0].text == 'hello'
            # The call is a task of the same caller.
            assert result.meta['a2ad/taskId'] in server.tasks(headers, agent)


@pytest.mark.parametrize('headers', [{}, bearer('a2ad_unknown'), bearer('a.b.c'), api_key('unknown')], ids=str)
async def test_clients_without_a_valid_credential_are_refused(server: Agents, mode: str, headers: Headers) -> None:
    sent = Sent()
    with pytest.raises(ExceptionGroup) as caught:
        async with connect(f'{server.url}/mcp', headers, mode, sent) as client:
            await client.list_tools()
    assert caught.group_contains(MCPError)
    assert set(sent.statuses) == {401}
    assert not sent.sessions


async def test_key_of_another_agent_is_refused(server: Agents, mode: str) -> None:
    sent = Sent()
    with pytest.raises(ExceptionGroup):
        async with connect(f'{server.url}/a2a/tokens/mcp', bearer(server.new_key()), mode, sent) as client:
            await client.list_tools()
    assert set(sent.statuses) == {403}


async def test_session_is_unknown_to_other_callers(server: Agents) -> None:
    sent = Sent()
    alice, bob = server.new_key(owner='alice'), server.new_key(owner='bob')
    async with connect(f'{server.url}/mcp', bearer(alice), 'legacy', sent) as client:
        await client.list_tools()
        (session,) = sent.sessions
        assert await status_in_session(server, session, bearer(bob)) == 404
        assert await status_in_session(server, session, {}) == 401
        assert await status_in_session(server, 'no-such-session', bearer(alice)) == 404
        assert await status_in_session(server, session, bearer(alice)) == 200
        # A second key of the same owner belongs to the same caller.
        assert await status_in_session(server, session, bearer(server.new_key(owner='alice'))) == 200


async def status_in_session(server: Agents, session: str, credentials: Headers) -> int:
    """The status of a request with the id of a session."""
    headers = {
        'Accept': 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2025-11-25',
        SESSION_ID: session,
        **credentials,
    }
    body = {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/list'}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=10) as http:
        return (await http.post(f'{server.url}/mcp', json=body)).status_code
