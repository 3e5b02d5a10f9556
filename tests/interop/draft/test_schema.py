"""Responses of the draft conform to its JSON schema and can be read by its models."""

import threading

import httpx
import pytest

from a2a_json_rpc import spec

from helpers import assert_conforms, error_code, send_params, texts


def test_card_conforms_to_the_draft(url: str, agent) -> None:
    for base in [url, *(f'{url}/a2a/{name}' for name in ('currency', 'echo', 'approver'))]:
        card = httpx.get(f'{base}/.well-known/agent.json', trust_env=False).raise_for_status().json()
        assert_conforms(card, 'AgentCard')
        for skill in card['skills']:
            spec.AgentSkill.model_validate(skill)
        assert spec.AgentCapabilities.model_validate(card['capabilities']).streaming
        assert card['url'].startswith(base)


def test_task_keeps_the_id_chosen_by_the_client(agent) -> None:
    sent = send_params('hello', sessionId='my-session')
    task = agent('echo').request_task('tasks/send', **sent)
    assert (task['id'], task['sessionId']) == (sent['id'], 'my-session')
    assert task['status']['state'] == 'completed'
    assert texts(task) == ['hello']
    assert task['artifacts'][0]['index'] == 0
    assert task['history'] == []


def test_short_task_id_is_accepted_and_a_session_is_created(agent) -> None:
    echo = agent('echo')
    assert echo.request_task('tasks/send', **send_params('one', task='129'))['id'] == '129'
    assert echo.request_task('tasks/get', id='129')['sessionId']


def test_stored_task_equals_the_response(agent) -> None:
    echo = agent('echo')
    sent = send_params('keep this')
    created = echo.request_task('tasks/send', **sent)
    assert echo.request_task('tasks/get', id=sent['id']) == created
    (message,) = echo.request_task('tasks/get', id=sent['id'], historyLength=1)['history'][-1:]
    assert_conforms(message, 'Message')


def test_every_kind_of_part_is_echoed_unchanged(agent) -> None:
    parts = [
        {'type': 'text', 'text': 'Grüße, 世界', 'metadata': {'mine': 1}},
        {'type': 'data', 'data': {'number': 1.5, 'nested': [True, None, {'text': ''}]}},
        {'type': 'file', 'file': {'name': 'a.bin', 'mimeType': 'application/octet-stream', 'bytes': 'AAEC/w=='}},
        {'type': 'file', 'file': {'uri': 'https://example.com/a%20b', 'mimeType': 'image/png'}},
    ]
    sent = send_params('') | {'message': {'role': 'user', 'parts': parts}}
    (artifact,) = agent('echo').request_task('tasks/send', **sent)['artifacts']
    assert artifact['parts'] == parts


def test_streamed_chunks_merge_to_the_stored_artifact(agent) -> None:
    writer = agent('slow-writer')
    sent = send_params('sections=3 delay=20ms')
    events = list(writer.stream('tasks/sendSubscribe', **sent))
    assert 'status' in events[0]
    assert events[-1]['status']['state'] == 'completed'
    chunks = [event['artifact'] for event in events if 'artifact' in event]
    assert len(chunks) >= 3
    assert {chunk['index'] for chunk in chunks} == {0}
    assert [bool(chunk.get('append')) for chunk in chunks] == [False] + [True] * (len(chunks) - 1)
    assert [bool(chunk.get('lastChunk')) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    stored = writer.request_task('tasks/get', id=sent['id'])
    assert texts(stored) == [''.join(part['text'] for chunk in chunks for part in chunk['parts'])]


def test_second_message_continues_the_task(agent) -> None:
    approver = agent('approver')
    question = send_params('may I?')
    events = list(approver.stream('tasks/sendSubscribe', **question))
    assert events[-1]['status']['state'] == 'input-required'
    assert events[-1]['status']['message']['role'] == 'agent'
    finished = approver.request_task('tasks/send', **send_params('approve', task=question['id']))
    assert finished['status']['state'] == 'completed'


def test_rejected_task_is_failed_in_the_draft(agent) -> None:
    approver = agent('approver')
    question = send_params('may I?')
    approver.request_task('tasks/send', **question)
    finished = approver.request_task('tasks/send', **send_params('deny', task=question['id']))
    assert finished['status']['state'] == 'failed'
    assert finished['metadata']['a2ad']['state'] == 'rejected'


def test_finished_task_is_reopened_by_another_message(agent) -> None:
    echo = agent('echo')
    sent = send_params('a square')
    echo.request_task('tasks/send', **sent)
    again = echo.request_task('tasks/send', **send_params('make it red', task=sent['id']))
    assert (again['id'], again['status']['state']) == (sent['id'], 'completed')
    assert texts(again)[-1] == 'make it red'


def test_task_can_be_resubscribed(agent) -> None:
    writer = agent('slow-writer')
    sent = send_params('sections=6 delay=50ms')
    stream = writer.stream('tasks/sendSubscribe', **sent)
    while 'artifact' not in next(stream):
        pass
    rest = list(writer.stream('tasks/resubscribe', id=sent['id']))
    assert rest[-1]['status']['state'] == 'completed'
    assert list(stream)[-1] == rest[-1]


def test_canceled_task_ends_its_stream(agent) -> None:
    echo = agent('echo')
    sent = send_params('hold this')
    stream = echo.stream('tasks/sendSubscribe', **sent)
    next(stream)
    canceled = echo.request_task('tasks/cancel', id=sent['id'])
    assert canceled['status']['state'] == 'canceled'
    assert list(stream)[-1]['status']['state'] == 'canceled'
    assert error_code(echo.call('tasks/cancel', id=sent['id'])) == -32002


@pytest.mark.parametrize('method', ['tasks/get', 'tasks/cancel'])
def test_unknown_task_is_not_found(agent, method: str) -> None:
    assert error_code(agent('echo').call(method, id='nobody-made-this')) == -32001


def test_errors_have_the_codes_of_the_schema(agent) -> None:
    echo = agent('echo')
    sent = send_params('done at once')
    echo.request_task('tasks/send', **sent)
    assert error_code(echo.call('tasks/cancel', id=sent['id'])) == -32002
    hook = {'url': 'https://example.com/hook'}
    assert error_code(echo.call('tasks/pushNotification/set', id=sent['id'], pushNotificationConfig=hook)) == -32003
    assert error_code(echo.call('tasks/pushNotification/get', id=sent['id'])) == -32003


MALFORMED = [
    ('{"method": "tasks/send"', -32700),
    ('"tasks/send"', -32600),
    ('{"jsonrpc": "2.0", "id": 1}', -32600),
    ('{"jsonrpc": "1.0", "id": 1, "method": "tasks/send", "params": {}}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "tasks/unheard", "params": {}}', -32601),
    ('{"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {}}', -32602),
    ('{"id": 1, "method": "tasks/send", "params": {"id": "x"}}', -32602),
    ('{"method": "tasks/send", "params": {"id": "x", "message": {"role": "user", "parts": []}}}', -32602),
]


@pytest.mark.parametrize(('body', 'code'), MALFORMED)
def test_malformed_request_gets_an_error_of_the_schema(agent, body: str, code: int) -> None:
    echo = agent('echo')
    response = echo.http.post(echo.url, content=body, headers={'Content-Type': 'application/json'})
    assert response.status_code == 200
    assert error_code(response.json()) == code


def test_request_without_envelope_is_accepted(agent) -> None:
    echo = agent('echo')
    response = echo.http.post(echo.url, json={'method': 'tasks/send', 'params': send_params('bare')}).json()
    assert_conforms(response, 'SendTaskResponse')
    assert texts(response['result']) == ['bare']


def test_all_subscribers_receive_the_same_last_event(agent) -> None:
    writer = agent('slow-writer')
    sent = send_params('sections=5 delay=50ms')
    stream = writer.stream('tasks/sendSubscribe', **sent)
    next(stream)
    ends = []
    subscribe = lambda: ends.append(list(writer.stream('tasks/resubscribe', id=sent['id']))[-1])  # noqa: E731
    others = [threading.Thread(target=subscribe) for _ in range(2)]
    for other in others:
        other.start()
    last = list(stream)[-1]
    for other in others:
        other.join()
    assert ends == [last, last]


# The text of the sample that was published with the draft.
@pytest.mark.parametrize('name', ['', 'currency'])
def test_exchange_rate_is_returned(agent, name: str) -> None:
    sent = send_params('How much is the exchange rate for 1 USD to INR?')
    task = agent(name).request_task('tasks/send', **sent)
    assert task['status']['state'] == 'completed'
    (artifact,) = task['artifacts']
    assert artifact['index'] == 0
    assert 'INR' in texts(task)[0]
    assert task['history'] == []


def test_incomplete_question_requires_input(agent) -> None:
    currency = agent('currency')
    question = send_params('how much is the exchange rate for 1 USD?')
    waiting = currency.request_task('tasks/send', **question)
    assert waiting['status']['state'] == 'input-required'
    assert waiting['status']['message']['parts'][0]['type'] == 'text'
    created = currency.request_task('tasks/send', **send_params('CAD', task=question['id']))
    assert created['status']['state'] == 'completed'
    assert 'CAD' in texts(created)[0]


def test_exchange_rate_is_streamed(agent) -> None:
    events = list(agent('currency').stream('tasks/sendSubscribe', **send_params('how much is 10 USD in EUR?')))
    progress = [e['status'] for e in events if 'status' in e and e['status']['state'] == 'working']
    assert any('message' in status for status in progress)
    assert [e['artifact']['index'] for e in events if 'artifact' in e] == [0]
    assert events[-1]['status']['state'] == 'completed'
