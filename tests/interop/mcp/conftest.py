"""A server of the program under test, and the three ways in which MCP clients reach its agents.

`A2AD_PROGRAM` is the program, `A2AD_URL` a server with the configuration `server.toml`. `NODE` and `PACKAGES` are
Node.js and the npm packages for the clients that are written in TypeScript.
"""

import json
import os
import urllib.request

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp import Client, StdioServerParameters


PROGRAM = os.environ['A2AD_PROGRAM']
URL = os.environ['A2AD_URL']
CONFIG = Path(__file__).parent / 'server.toml'


def a2a(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Calls the agent over A2A."""
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()
    headers = {'Content-Type': 'application/json', 'A2A-Version': '1.0'}
    request = urllib.request.Request(f'{URL}/a2a/demo', body, headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)['result']


def working() -> list[str]:
    """The tasks of the agent that have not ended."""
    return [task['id'] for task in a2a('ListTasks', {'status': 'TASK_STATE_WORKING'})['tasks']]


@dataclass(frozen=True)
class Endpoint:
    """How a client reaches the agents, and how their tools are named there."""

    name: str
    arguments: list[str] | None
    prefix: str

    def connect(self, mode: str, **options: Any) -> Client:
        server: StdioServerParameters | str = f'{URL}/mcp'
        if self.arguments is not None:
            server = StdioServerParameters(command=PROGRAM, args=self.arguments)
        return Client(server, mode=mode, **options)

    def tool(self, skill: str) -> str:
        return self.prefix + skill


ENDPOINTS = [
    Endpoint('http', None, ''),
    Endpoint('stdio-of-file', ['mcp', '--config', str(CONFIG)], 'demo__'),
    Endpoint('stdio-of-server', ['mcp', '--url', URL], 'demo__'),
]


@pytest.fixture(params=ENDPOINTS, ids=lambda endpoint: endpoint.name)
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    return request.param


@pytest.fixture(params=['2026-07-28', 'legacy', 'auto'])
def mode(request: pytest.FixtureRequest) -> str:
    """The revision of the client: the newest, the last with a handshake, or whichever it finds."""
    return request.param


@pytest.fixture
def anyio_backend() -> str:
    return 'asyncio'
