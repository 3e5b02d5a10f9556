"""MCP servers over HTTP that require credentials, fail, or confuse their calls."""

import json
import threading

from concurrent.futures import ThreadPoolExecutor

import pytest

from fake_mcp_http import FakeServer
from helpers import data, result, state, status_text, text


@pytest.fixture
def fake():
    server = FakeServer()
    yield server
    server.shutdown()


@pytest.mark.parametrize(
    ('status', 'headers'), [(401, {'WWW-Authenticate': 'Bearer scope="files"'}), (403, {})], ids=['401', '403']
)
def test_missing_credentials_are_asked_for(start, fake, status, headers):
    server = start(f'[mcp.fake]\nurl = "{fake.url}"\n')
    fake.refuse = lambda message: (status, None, headers) if message.get('method') == 'tools/call' else None
    task = server.send('echo', text('hi'))
    assert state(task) == 'auth_required', task['status']
    (challenge,) = [part['data'] for part in task['status']['message']['parts'] if 'data' in part]
    assert challenge == {'schemes': ['Bearer'], 'challenge': headers.get('WWW-Authenticate', '')}
    fake.refuse = None
    assert result(server.send('', text('done'), taskId=task['id']))[0]['text'] == 'echo hi'


def test_server_that_requires_credentials_from_the_start_does_not_stop_a2ad(start, fake):
    fake.refuse = lambda message: (401, None, {'WWW-Authenticate': 'Bearer'})
    server = start(
        f'[mcp.fake]\nurl = "{fake.url}"\n[skills.echo]\nmcp = {{ server = "fake", tool = "echo" }}\n'
    )
    assert state(server.send('echo', data({'text': 'hi'}))) == 'auth_required'


def test_error_without_an_id_belongs_to_the_call_that_it_answers(start, fake):
    server = start(f'[mcp.fake]\nurl = "{fake.url}"\n')
    error = {'jsonrpc': '2.0', 'id': None, 'error': {'code': -32603, 'message': 'out of order'}}
    fake.answer = lambda call: [error]
    assert status_text(server.send('echo', text('hi'))) == 'out of order'
    fake.refuse = lambda message: (400, error) if message.get('method') == 'tools/call' else None
    assert status_text(server.send('echo', text('hi'))) == 'out of order'


def test_answer_on_the_stream_of_another_call_is_ignored(start, fake):
    server = start(
        f'[mcp.fake]\nurl = "{fake.url}"\nelicitation = false\n'
        '[server]\ndefault_agent = "one"\n'
        '[agents.one]\nskills = ["mcp:fake/*"]\n[agents.two]\nskills = ["mcp:fake/*"]\n'
    )
    calls, both = [], threading.Barrier(2, timeout=30)

    def confused(call):
        calls.append(call)
        both.wait()
        (other,) = [one for one in calls if one is not call]
        return [FakeServer.result(call, of=other), FakeServer.result(call)]

    fake.answer = confused
    with ThreadPoolExecutor() as threads:
        sent = {agent: threads.submit(server.send, 'echo', text(agent), agent=agent) for agent in ('one', 'two')}
        for agent, task in sent.items():
            assert result(task.result())[0]['text'] == f'echo {agent}'


def test_answer_that_is_too_large_fails_the_call(start, fake):
    server = start(f'[mcp.fake]\nurl = "{fake.url}"\n')
    huge = 'x' * (17 << 20)
    fake.answer = lambda call: [{**FakeServer.result(call), 'result': {'content': [{'type': 'text', 'text': huge}]}}]
    task = server.send('echo', text('hi'))
    assert state(task) == 'failed'
    assert 'larger than 16777216 bytes' in json.dumps(task['status'])
