"""Both lines of the TypeScript SDK of MCP, over HTTP and over standard input and output."""

import json
import os
import shutil
import subprocess
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import PROGRAM, URL, Endpoint, working


SCRIPT = Path(__file__).with_name('typescript_client.js')

CLIENTS = {
    '2-newest': (2, {'pin': '2026-07-28'}),
    '2-auto': (2, 'auto'),
    '2-legacy': (2, 'legacy'),
    '1': (1, None),
}


def run(sdk: int, request: dict[str, Any]) -> dict[str, Any]:
    # Node.js looks for packages beside the script.
    packages = Path(os.environ['PACKAGES' if sdk == 2 else 'PACKAGES_1'])
    script = shutil.copyfile(SCRIPT, packages / 'typescript_client.mjs')
    command = [os.environ.get('NODE', 'node'), str(script), json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


@pytest.mark.parametrize('client', CLIENTS)
def test_session_of_a_client(endpoint: Endpoint, client: str) -> None:
    sdk, mode = CLIENTS[client]
    target = {'url': f'{URL}/mcp'} if endpoint.arguments is None else {'command': PROGRAM, 'args': endpoint.arguments}
    seen = run(sdk, {'sdk': sdk, 'mode': mode, 'prefix': endpoint.prefix, **target})
    assert set(seen['tools']) >= {endpoint.tool(skill) for skill in ('echo', 'approver', 'slow-writer', 'add')}
    assert seen['sum'] == {'sum': 42.5}
    assert seen['echo'] == [{'type': 'text', 'text': 'one\ntwo ü'}]
    assert 'Section 2 of 2' in seen['written'][-1]['text']
    assert [notice['progress'] for notice in seen['progress']] == sorted(n['progress'] for n in seen['progress'])
    assert any('section 2 of 2' in notice.get('message', '') for notice in seen['progress'])
    assert len(seen['asked']) == 1 and 'May I proceed with: jump' in seen['asked'][0]
    assert seen['approved'] == [{'type': 'text', 'text': 'Approved: jump'}]
    assert seen['resources'] == ['a2a://agents/demo/card', 'a2a://agents/other/card']
    assert {skill['id'] for skill in seen['card']['skills']} == {'echo', 'approver', 'slow-writer', 'add'}
    assert seen['aborted']
    if endpoint.name != 'stdio-of-file':
        wait_until(lambda: not working(), 'the task of the call that was given up is canceled')
