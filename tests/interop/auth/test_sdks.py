"""Clients of the official SDKs, with the authentication of each SDK, against an agent that requires credentials."""

import json
import re
import subprocess

from typing import Any

import pytest

from conftest import SECRET, Start, StartProvider
from environment import NODE, PACKAGES_SDK, PYTHON_SDK, PYTHON_SDK_03
from tokens import PyJwt, claims, node_script, secret


CONFIG = """
[server]
default_agent = "other"
[auth]
secret_env = "A2A_SECRET"
issuers = [{ issuer = "ISSUER", audience = "a2ad" }]
[skills]
echo = { builtin = "echo" }
[agents]
main = { skills = ["echo"], auth = ["api-key", "jwt", "oidc"] }
other = { skills = ["echo"], auth = ["api-key"] }
"""

SDKS = {
    'python': lambda: [PYTHON_SDK, 'sdk_client.py'],
    'python03': lambda: [PYTHON_SDK_03, 'sdk03_client.py'],
    'javascript': lambda: [NODE, node_script('sdk_client.js', PACKAGES_SDK)],
}

# What the SDKs make of the two errors in each binding.
REFUSED = re.compile('401|UNAUTHENTICATED|requires a credential')
UNKNOWN = re.compile('404|TaskNotFoundError|Task not found')


def run(sdk: str, request: dict[str, Any]) -> dict[str, Any]:
    command = [*SDKS[sdk](), json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize('kind', ['apiKey', 'bearer', 'openId'])
@pytest.mark.parametrize('sdk', SDKS)
def test_clients_send_the_credential_of_the_card(
    start: Start, start_provider: StartProvider, sdk: str, kind: str
) -> None:
    provider = start_provider()
    server = start(CONFIG.replace('ISSUER', provider.url))
    make = {
        'apiKey': lambda name: server.new_key(owner=name),
        'bearer': lambda name: PyJwt().sign(claims(sub=name), secret(SECRET)),
        'openId': provider.token,
    }[kind]
    callers = {name: make(name) for name in ('alice', 'bob')}
    sessions = run(sdk, {'url': f'{server.url}/a2a/main', 'kind': kind, 'callers': callers})
    assert len(sessions) == (2 if sdk == 'python03' else 3)
    for binding, seen in sessions.items():
        assert set(seen['schemes']) == {'ApiKey', 'jwtBearer', 'oidc'}
        assert REFUSED.search(seen['without']), (binding, seen['without'])
        assert seen['text'] == 'hello'
        assert seen['own'] == seen['task']
        assert UNKNOWN.search(seen['foreign']), (binding, seen['foreign'])
        assert seen['streamed'][0].lower() == 'task' and len(seen['streamed']) > 2
        if 'listed' in seen:
            assert seen['task'] in seen['listed']
            assert seen['task'] not in seen['listed_by_other']
        if 'retries' in seen and binding != 'GRPC':
            # Each of the two callers got one challenge, and then used the same header for all its calls.
            assert len(seen['retries']) == 2, seen['retries']
