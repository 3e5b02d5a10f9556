"""Tools of MCP servers as skills: the reference server, and the servers for time, git and files."""

import base64
import json
import os
import signal
import sys
import time

from pathlib import Path

import pytest

from helpers import (
    command_line,
    data,
    descendants,
    eventually,
    is_running,
    result,
    state,
    status_text,
    text,
    toml_list,
)


@pytest.fixture(params=['stdio', 'http'])
def reference(request, everything, tmp_path):
    """The table of the reference server, as a process of a2ad and over streamable HTTP."""
    if request.param == 'stdio':
        yield f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\n'
        return
    from http_server import HttpServer

    with HttpServer(everything, tmp_path) as url:
        yield f'[mcp.everything]\nurl = "{url}/mcp"\n'


def test_each_tool_is_a_skill_with_its_schema(start, reference):
    server = start(reference)
    card = server.get('/.well-known/agent-card.json')
    skills = {skill['id']: skill for skill in card['skills']}
    assert {'echo', 'get-sum', 'trigger-long-running-operation'} <= skills.keys()
    assert skills['echo']['description'] == 'Echoes back the input string'
    assert skills['echo']['inputModes'] == ['application/json', 'text/plain']
    assert f'with {len(skills)} tool(s)' in card['description']
    (extension,) = [
        one for one in card['capabilities']['extensions'] if one['uri'] == 'urn:a2ad:ext:skill-schemas:1'
    ]
    assert extension['params']['get-sum']['input']['required'] == ['a', 'b']


def test_arguments_come_from_data_or_from_text(start, reference):
    server = start(reference)
    (part,) = result(server.send('echo', data({'message': 'hi'})))
    assert part['text'] == 'Echo: hi'
    assert result(server.send('echo', text('hello you')))[0]['text'] == 'Echo: hello you'
    assert '5' in result(server.send('get-sum', text('{"a": 2, "b": 3}')))[0]['text']


def test_wrong_arguments_are_rejected_and_missing_ones_asked_for(start, reference):
    server = start(reference)
    wrong = server.send('get-sum', data({'a': 'two', 'b': 3}))
    assert state(wrong) == 'rejected'
    assert 'arguments.a' in status_text(wrong)
    asked = server.send('get-sum', text('add something'))
    assert state(asked) == 'input_required'
    assert 'a, b' in status_text(asked)
    answered = server.send('', data({'a': 1, 'b': 2}), taskId=asked['id'])
    assert '3' in result(answered)[0]['text']


def test_structured_content_is_a_data_part_and_images_are_files(start, reference):
    server = start(reference)
    parts = result(server.send('get-structured-content', data({'location': 'New York'})))
    (structured,) = [part['data'] for part in parts if 'data' in part]
    assert {'temperature', 'conditions', 'humidity'} <= structured.keys()
    images = [part for part in result(server.send('get-tiny-image', data({}))) if 'raw' in part]
    assert images[0]['mediaType'] == 'image/png'
    assert base64.b64decode(images[0]['raw']).startswith(b'\x89PNG')


def test_progress_is_reported_while_a_tool_runs(start, reference):
    server = start(reference)
    events = list(server.stream('trigger-long-running-operation', data({'duration': 1, 'steps': 4})))
    updates = [event['statusUpdate']['status'] for event in events if 'statusUpdate' in event]
    messages = [status.get('message') for status in updates if status['state'] == 'TASK_STATE_WORKING']
    working = [message for message in messages if message]
    reports = [message['metadata']['a2ad'] for message in working]
    assert {(1, 4), (2, 4), (3, 4)} <= {(report['progress'], report['total']) for report in reports}
    assert working[0]['parts'][0]['text'] == '1 of 4'
    assert updates[-1]['state'] == 'TASK_STATE_COMPLETED'


def test_cancel_ends_the_task_at_once(start, reference):
    server = start(reference)
    task = server.send('trigger-long-running-operation', data({'duration': 20, 'steps': 20}), wait=False)
    server.wait(task['id'], 'working')
    begun = time.monotonic()
    assert state(server.rpc('CancelTask', {'id': task['id']})) == 'canceled'
    assert time.monotonic() - begun < 6
    assert result(server.send('echo', text('next')))[0]['text'] == 'Echo: next'


def test_elicitation_asks_the_client(start, reference):
    server = start(reference)
    task = server.send('trigger-elicitation-request', data({}))
    assert state(task) == 'input_required', task
    schemas = [part['data'] for part in task['status']['message']['parts'] if 'data' in part]
    assert schemas, task['status']
    required = find_required(schemas)
    answer = {name: 'Ada' for name in required} or {'name': 'Ada'}
    done = server.send('', data(answer), taskId=task['id'])
    assert state(done) == 'completed', done['status']
    assert 'Ada' in json.dumps(done['artifacts'])


def find_required(schemas):
    for schema in schemas:
        if isinstance(schema, dict):
            if 'required' in schema:
                return schema['required']
            for value in schema.values():
                if found := find_required([value]):
                    return found
    return []


def test_elicitation_can_be_declined(start, reference):
    server = start(reference)
    task = server.send('trigger-elicitation-request', data({}))
    done = server.send('', data({'action': 'decline'}), taskId=task['id'])
    assert state(done) == 'completed'
    assert 'decline' in json.dumps(done['artifacts']).lower()


def test_elicitation_does_not_survive_a_restart_and_is_reported(start, everything, tmp_path):
    config = f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\n'
    first = start(config)
    task = first.send('trigger-elicitation-request', data({}))
    assert state(task) == 'input_required'
    first.stop()
    second = start(config)
    lost = second.send('', data({'name': 'Ada'}), taskId=task['id'])
    assert state(lost) == 'failed'
    assert lost['status']['message']['metadata']['a2ad']['reason'] == 'elicitation_lost'


def test_url_elicitation_asks_for_credentials(start, reference):
    server = start(reference)
    url = 'https://example.com/sign-in'
    task = server.send('trigger-url-elicitation', data({'url': url}))
    assert state(task) == 'auth_required', task
    assert {'url': url} in [part.get('data') for part in task['status']['message']['parts']]
    done = server.send('', text('done'), taskId=task['id'])
    assert 'completed the URL elicitation' in json.dumps(result(done))


def test_error_that_names_a_url_asks_for_credentials_and_the_call_is_sent_again(start, reference):
    server = start(reference)
    task = server.send('trigger-url-elicitation', data({'url': 'https://example.com/x', 'errorPath': True}))
    assert state(task) == 'auth_required', task
    assert 'https://modelcontextprotocol.io' in json.dumps(task['status'])
    again = server.send('', text('done'), taskId=task['id'])
    assert state(again) == 'auth_required', 'the call itself asks for its own URL'
    assert 'https://example.com/x' in json.dumps(again['status'])
    done = server.send('', text('done'), taskId=task['id'])
    assert state(done) == 'completed', done['status']


def test_error_of_a_tool_fails_the_task(start, filesystem, tmp_path):
    (tmp_path / 'files').mkdir()
    (tmp_path / 'files/a.txt').write_text('content')
    server = start(f'[mcp.files]\ncommand = {toml_list([*filesystem, str(tmp_path / "files")])}\n')
    read = server.send('read_text_file', data({'path': str(tmp_path / 'files/a.txt')}))
    assert 'content' in json.dumps(result(read))
    outside = server.send('read_text_file', data({'path': '/etc/hostname'}))
    assert state(outside) == 'failed'
    assert 'denied' in status_text(outside).lower()


def processes(server, name):
    """The processes of an MCP server, without their supervisors."""
    lines = {pid: command_line(pid) for pid in descendants(server.pid)}
    return [pid for pid, line in lines.items() if name in line and 'supervise' not in line]


def test_a_killed_server_ends_its_task_and_the_next_call_works(start, everything):
    server = start(f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\n')
    asked = server.send('trigger-elicitation-request', data({}))
    assert state(asked) == 'input_required'
    # The tool is idempotent, so the turn is tried again in a new process.
    task = server.send('trigger-long-running-operation', data({'duration': 2, 'steps': 4}), wait=False)
    eventually(lambda: status_text(server.task(task['id'])) or None)
    for pid in processes(server, 'server-everything'):
        os.kill(pid, signal.SIGKILL)
    assert result(server.send('echo', text('at once')))[0]['text'] == 'Echo: at once'
    assert state(server.wait(task['id'], 'completed')) == 'completed'
    lost = server.wait(asked['id'], 'failed')
    assert lost['status']['message']['metadata']['a2ad']['reason'] == 'elicitation_lost'
    assert result(server.send('echo', text('again')))[0]['text'] == 'Echo: again'


def test_a_killed_server_behind_a_url_ends_its_task_and_works_after_its_restart(start, everything, tmp_path):
    from http_server import HttpServer

    behind = HttpServer(everything, tmp_path)
    with behind as url:
        server = start(f'[mcp.everything]\nurl = "{url}/mcp"\n')
        assert result(server.send('echo', text('before')))[0]['text'] == 'Echo: before'
        task = server.send('trigger-elicitation-request', data({}), wait=False)
        server.wait(task['id'], 'input_required')
        running = server.send('trigger-long-running-operation', data({'duration': 2, 'steps': 4}), wait=False)
        eventually(lambda: status_text(server.task(running['id'])) or None)
    with HttpServer(everything, tmp_path, behind.port):
        assert result(server.send('echo', text('after')))[0]['text'] == 'Echo: after'
        if state(server.task(task['id'])) != 'failed':
            # The end of a session is noticed by its next request at the latest.
            server.post_answer(data({'name': 'Ada'}), task['id'])
        server.wait(task['id'], 'failed')
        # It is idempotent, so it is tried again.
        assert 'completed' in json.dumps(result(server.wait(running['id'], 'completed', 'failed')))


def test_cancel_of_a_task_that_asks_frees_its_process(start, everything):
    server = start(f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\npool = {{ max = 1 }}\n')
    task = server.send('trigger-elicitation-request', data({}))
    assert state(task) == 'input_required'
    assert state(server.rpc('CancelTask', {'id': task['id']})) == 'canceled'
    begun = time.monotonic()
    assert result(server.send('echo', text('next')))[0]['text'] == 'Echo: next'
    assert time.monotonic() - begun < 30, 'the timeout of the server is 60 s'


def test_calls_do_not_wait_for_clients_that_never_answer(start, everything):
    server = start(
        f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\npool = {{ max = 2 }}\ntimeout = "3s"\n'
    )
    asked = [server.send('trigger-elicitation-request', data({})) for _ in range(2)]
    assert {state(task) for task in asked} == {'input_required'}
    # The oldest question gives up its process.
    assert result(server.send('echo', text('mine')))[0]['text'] == 'Echo: mine'
    lost = server.wait(asked[0]['id'], 'failed')
    assert lost['status']['message']['metadata']['a2ad']['reason'] == 'elicitation_lost'
    kept = server.send('', data({'name': 'Ada'}), taskId=asked[1]['id'])
    assert state(kept) == 'completed'


def test_hanging_server_fails_the_call_and_nothing_else(start, everything):
    server = start(
        f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\ntimeout = "2s"\n'
        '[skills.hello]\nbuiltin = "echo"\n'
    )
    for pid in processes(server, 'server-everything'):
        os.kill(pid, signal.SIGSTOP)
    task = server.send('toggle-simulated-logging', data({}), wait=False)
    assert state(server.send('hello', text('hi'))) == 'completed'
    failed = server.wait(task['id'], 'failed')
    assert 'neither answered nor reported progress for 2 s' in status_text(failed)
    assert result(server.send('echo', text('next')))[0]['text'] == 'Echo: next'


def test_a_server_that_does_not_start_does_not_stop_a2ad(start, time_server):
    server = start(
        '[mcp.broken]\ncommand = ["sh", "-c", "exit 3"]\n'
        f'[mcp.clock]\ncommand = {toml_list([time_server, "--local-timezone", "UTC"])}\n'
    )
    assert state(server.send('get_current_time', data({'timezone': 'UTC'}))) == 'completed'


def test_environment_of_a_server_is_what_the_file_lists(start, everything):
    server = start(
        f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\n'
        'env = { GIVEN = "1" }\ninherit_env = ["PASSED"]\n',
        env={'PASSED': '2', 'A_SECRET': 'hidden'},
    )
    shown = json.dumps(result(server.send('get-env', data({}))))
    assert 'GIVEN' in shown
    assert 'PASSED' in shown
    assert 'A_SECRET' not in shown


def test_time_and_git_servers(start, time_server, git_server, repository):
    server = start(
        f'[mcp.clock]\ncommand = {toml_list([time_server, "--local-timezone", "UTC"])}\n'
        f'[mcp.git]\ncommand = {toml_list([git_server, "--repository", str(repository)])}\n'
        '[skills.now]\nmcp = { server = "clock", tool = "get_current_time" }\n'
        'description = "The time of day"\n'
        '[agents.clock]\nskills = ["now"]\n'
        '[agents.main]\nskills = ["mcp:clock/convert_time", "mcp:git/*"]\n'
    )
    now = result(server.send('now', text('Europe/Berlin'), agent='clock'))
    (found,) = [part['data'] for part in now if 'data' in part]
    assert found['timezone'] == 'Europe/Berlin'
    log = server.send('git_log', data({'repo_path': str(repository)}))
    assert 'first' in json.dumps(result(log))
    card = server.get('/a2a/main/.well-known/agent-card.json')
    ids = {skill['id'] for skill in card['skills']}
    assert 'convert_time' in ids
    assert 'get_current_time' not in ids


def test_colliding_tools_get_the_name_of_their_server(start, everything):
    command = toml_list([*everything, 'stdio'])
    server = start(f'[mcp.one]\ncommand = {command}\n[mcp.two]\ncommand = {command}\n')
    ids = {skill['id'] for skill in server.get('/.well-known/agent-card.json')['skills']}
    assert {'one__echo', 'two__echo'} <= ids
    assert 'echo' not in ids
    assert result(server.send('two__echo', text('x')))[0]['text'] == 'Echo: x'


def test_changed_tools_change_the_card(start, tmp_path):
    script = Path(__file__).with_name('changing_server.py')
    server = start(f'[mcp.shop]\ncommand = {toml_list([sys.executable, str(script)])}\n')

    def skills():
        return {skill['id'] for skill in server.get('/.well-known/agent-card.json')['skills']}

    assert skills() == {'open_department'}
    assert state(server.send('open_department', data({'name': 'shoes'}))) == 'completed'
    assert eventually(lambda: skills() if 'shoes' in skills() else None) == {'open_department', 'shoes'}
    assert 'sold shoes' in json.dumps(result(server.send('shoes', data({}))))


@pytest.mark.parametrize('isolation', ['shared', 'context', 'call'])
def test_isolation_decides_who_shares_the_memory_of_a_server(start, isolation):
    script = Path(__file__).with_name('counting_server.py')
    server = start(
        f'[mcp.counter]\ncommand = {toml_list([sys.executable, str(script)])}\nisolation = "{isolation}"\n'
        '[server]\ndefault_agent = "one"\n'
        '[agents.one]\nskills = ["mcp:counter/count"]\n[agents.two]\nskills = ["mcp:counter/count"]\n'
    )

    def count(agent, context):
        parts = result(server.send('count', data({}), agent=agent, contextId=context))
        return parts[0]['data']['result']

    # Two callers with the same name for their conversation.
    counts = [count('one', 'c'), count('one', 'c'), count('one', 'other'), count('two', 'c')]
    assert counts == {'shared': [1, 2, 3, 4], 'context': [1, 2, 1, 1], 'call': [1, 1, 1, 1]}[isolation]


def test_call_has_an_idempotency_key_and_an_attempt(start):
    script = Path(__file__).with_name('counting_server.py')
    server = start(f'[mcp.counter]\ncommand = {toml_list([sys.executable, str(script)])}\n')
    (part,) = result(server.send('meta', data({})))
    assert part['data']['a2ad/attempt'] == 1
    assert part['data']['a2ad/idempotencyKey'].startswith('a2ad:')


@pytest.mark.parametrize('how', ['term', 'kill'])
def test_no_process_outlives_the_server(start, everything, time_server, how):
    server = start(
        f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\npool = {{ min = 2 }}\n'
        f'[mcp.clock]\ncommand = {toml_list([time_server, "--local-timezone", "UTC"])}\n'
    )
    started = descendants(server.pid)
    assert len(started) >= 3
    if how == 'term':
        assert server.stop() == 0
    else:
        server.kill()
    eventually(lambda: True if not any(is_running(pid) for pid in started) else None, limit=8)


def test_all_generations_call_the_same_tool(start, time_server):
    server = start(f'[mcp.clock]\ncommand = {toml_list([time_server, "--local-timezone", "UTC"])}\n')
    arguments = {'timezone': 'UTC'}
    draft = server.post(
        '/_a2a/',
        {
            'jsonrpc': '2.0',
            'id': '1',
            'method': 'tasks/send',
            'params': {'skill': 'get_current_time', 'message': arguments},
        },
    )['result']
    assert draft['status']['state'] == 'completed'
    assert draft['artifacts'][0]['name'] == 'get_current_time-result'
    message = {'messageId': 'm1', 'role': 'user', 'parts': [{'kind': 'data', 'data': arguments}], 'kind': 'message'}
    v03 = server.post(
        '/a2a/main',
        {
            'jsonrpc': '2.0',
            'id': 1,
            'method': 'message/send',
            'params': {'message': message, 'metadata': {'skillId': 'get_current_time'}},
        },
    )['result']
    assert v03['status']['state'] == 'completed'
    v1 = server.send('get_current_time', data(arguments))
    assert state(v1) == 'completed'
    rest = server.post(
        '/a2a/main/message:send',
        {
            'message': {'messageId': 'm2', 'role': 'ROLE_USER', 'parts': [data(arguments)]},
            'metadata': {'skillId': 'get_current_time'},
        },
        {'A2A-Version': '1.0'},
    )
    assert state(rest['task']) == 'completed'
