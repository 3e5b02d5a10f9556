"""A server process of the program under test that may call receivers on this machine, and calls of its operations."""

import json
import os
import subprocess
import urllib.error
import urllib.request
import uuid

from dataclasses import dataclass
from email.message import Message
from typing import Any

from helpers import Server


Json = dict[str, Any]

# `ALLOW` is the list of networks that may be called, `PUSH` further keys.
CONFIG = """
[server]
default_agent = "main"
[outbound]
allow = ALLOW
allow_http = true
[push]
PUSH
[skills]
approver = { builtin = "approver" }
echo = { builtin = "echo" }
slow-writer = { builtin = "slow-writer" }
[agents]
main = { skills = ["approver"] }
echo = { skills = ["echo"] }
writer = { skills = ["slow-writer"], push_events = ["status", "progress", "artifact"] }
"""

LOOPBACK = '["127.0.0.0/8"]'
# Waits that tests can afford.
QUICK = 'retry_after = ["100ms", "100ms", "100ms", "100ms", "100ms", "100ms", "100ms", "100ms"]\nprobe_after = "100ms"'


def config(push: str = QUICK, allow: str = LOOPBACK) -> str:
    return CONFIG.replace('PUSH', push).replace('ALLOW', allow)


@dataclass(frozen=True)
class Response:
    status: int
    headers: Message
    body: Json

    @property
    def result(self) -> Any:
        assert self.status == 200 and 'error' not in self.body, (self.status, self.body)
        return self.body.get('result', self.body)

    @property
    def secret(self) -> str | None:
        """The secret that was made for a webhook."""
        return self.headers['A2AD-Webhook-Secret']

    @property
    def health(self) -> str:
        return self.headers['A2AD-Push-Health']


class PushServer(Server):
    def call(self, method: str, params: Json, agent: str = 'main', version: str = '1.0') -> Response:
        """A call over JSON-RPC."""
        body = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}
        return self.request(f'/a2a/{agent}', body, {'A2A-Version': version} if version else {})

    def request(self, path: str, body: Json | None, headers: dict[str, str]) -> Response:
        """A request, whatever its status."""
        data = None if body is None else json.dumps(body).encode()
        headers = {'Content-Type': 'application/json', **headers}
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Response(response.status, response.headers, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, error.headers, json.load(error))

    def say(self, text: str, task: str | None = None, agent: str = 'main', push: Json | None = None) -> Response:
        """A blocking send, with the inline config of a webhook."""
        message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': [{'text': text}]}
        if task:
            message['taskId'] = task
        configuration = {'taskPushNotificationConfig': push} if push else {}
        return self.call('SendMessage', {'message': message, 'configuration': configuration}, agent)

    def ask(self, agent: str = 'main') -> str:
        """A task of the approver that waits for approval; its id."""
        task = self.say('jump', agent=agent).result['task']
        assert task['status']['state'] == 'TASK_STATE_INPUT_REQUIRED', task
        return task['id']

    def register(self, task: str, url: str, agent: str = 'main', **fields: Any) -> Response:
        response = self.call('CreateTaskPushNotificationConfig', {'taskId': task, 'url': url, **fields}, agent)
        assert response.result['url'] == url
        return response

    def health(self, task: str, webhook: str, agent: str = 'main') -> str:
        return self.call('GetTaskPushNotificationConfig', {'taskId': task, 'id': webhook}, agent).health

    def operate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of the program with the configuration of the server."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith('A2AD_')}
        return subprocess.run(
            [os.environ['A2AD_PROGRAM'], *arguments, '--config', 'a2ad.toml'],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
        )

    def deliveries(self) -> list[list[str]]:
        """The rows of `a2ad deliveries ls`: id, task, state and so on."""
        done = self.operate('deliveries', 'ls')
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines()]

    def dead_letters(self) -> list[list[str]] | None:
        """The same, once there are some and all of them were given up."""
        rows = self.deliveries()
        return rows if rows and {row[2] for row in rows} == {'dead'} else None
