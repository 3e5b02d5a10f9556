"""A server process of the program under test, called with credentials, by the standard library."""

import json
import os
import subprocess
import urllib.error
import urllib.request
import uuid

from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from environment import PROGRAM
from helpers import Server


Json = dict[str, Any]
Headers = dict[str, str]


def bearer(token: str) -> Headers:
    return {'Authorization': f'Bearer {token}'}


def api_key(key: str) -> Headers:
    return {'X-Api-Key': key}


@dataclass(frozen=True)
class Response:
    status: int
    headers: Message
    body: Json


class Agents(Server):
    """A server whose agents require credentials; `main` is the agent that is called."""

    def __init__(self, config: str, directory: Path, env: dict[str, str]) -> None:
        super().__init__(config, directory, env)
        self.env = env

    def call(self, method: str, params: Json, headers: Headers, agent: str = 'main') -> Response:
        """A call of A2A 1.0 over JSON-RPC, whatever its status."""
        body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()
        headers = {'Content-Type': 'application/json', 'A2A-Version': '1.0', **headers}
        request = urllib.request.Request(f'{self.url}/a2a/{agent}', body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Response(response.status, response.headers, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, error.headers, json.load(error))

    def send(self, headers: Headers, agent: str = 'main') -> Response:
        message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': [{'text': 'hello'}]}
        return self.call('SendMessage', {'message': message}, headers, agent)

    def accepted(self, headers: Headers, agent: str = 'main') -> str:
        """Sends a message, which must be accepted; the id of the task."""
        response = self.send(headers, agent)
        assert response.status == 200, response.body
        task = response.body['result']['task']
        assert task['artifacts'][0]['parts'][0]['text'] == 'hello'
        return task['id']

    def refused(self, headers: Headers, reason: str, agent: str = 'main') -> None:
        """Sends a message, which must be refused because of its credentials, with this text in the error."""
        response = self.send(headers, agent)
        assert response.status == 401, response.body
        assert response.headers['WWW-Authenticate']
        message = response.body['error']['message']
        assert reason in message, message

    def tasks(self, headers: Headers, agent: str = 'main') -> set[str]:
        """The tasks that a caller sees."""
        response = self.call('ListTasks', {}, headers, agent)
        assert response.status == 200, response.body
        return {task['id'] for task in response.body['result']['tasks']}

    def card(self, agent: str = 'main') -> Json:
        return self.get(f'/a2a/{agent}/.well-known/agent-card.json')

    def new_key(self, agent: str = 'main', owner: str | None = None) -> str:
        """Makes an API key."""
        return self.command('keys', 'new', agent, *(['--owner', owner] if owner else []))

    def command(self, *arguments: str) -> str:
        """Runs a command of the program with the configuration of the server; its output without the end of the line."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith('A2AD_')}
        done = subprocess.run(
            [PROGRAM, *arguments, '--config', 'a2ad.toml'],
            cwd=self.directory,
            env={**environment, **self.env},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.removesuffix('\n')
