"""Answers of the draft conform to its JSON schema, and its models read them."""

import threading

import httpx
import pytest

from a2a_json_rpc import spec

from talk import conforms, error_of, say, texts


def test_the_card_of_the_draft_conforms(url: str, agent) -> None:
    for base in [url, *(f'{url}/a2a/{name}' for name in ('currency', 'echo', 'approver'))]:
        card = httpx.get(f'{base}/.well-known/agent.json', trust_env=False).raise_for_status().json()
        conforms(card, 'AgentCard')
        for skill in card['skills']:
            spec.AgentSkill.model_validate(skill)
        assert spec.AgentCapabilities.model_validate(card['capabilities']).streaming
        assert card['url'].startswith(base)


def test_a_task_has_the_name_its_client_gave(agent) -> None:
    sent = say('hello', sessionId='my-session')
    task = agent('echo').ask('tasks/send', **sent)
    assert (task['id'], task['sessionId']) == (sent['id'], 'my-session')
    assert task['status']['state'] == 'completed'
    assert texts(task) == ['hello']
    assert task['artifacts'][0]['index'] == 0
    assert task['history'] == []


def test_short_names_will_do_and_a_session_is_made(agent) -> None:
    echo = agent('echo')
    assert echo.ask('tasks/send', **say('one', task='129'))['id'] == '129'
    assert echo.ask('tasks/get', id='129')['sessionId']


def test_a_stored_task_reads_in_the_draft(agent) -> None:
    echo = agent('echo')
    sent = say('keep this')
    answered = echo.ask('tasks/send', **sent)
    assert echo.ask('tasks/get', id=sent['id']) == answered
    (message,) = echo.ask('tasks/get', id=sent['id'], historyLength=1)['history'][-1:]
    conforms(message, 'Message')


def test_every_kind_of_part_comes_back_as_it_was_sent(agent) -> None:
    parts = [
        {'type': 'text', 'text': 'Grüße, 世界', 'metadata': {'mine': 1}},
        {'type': 'data', 'data': {'number': 1.5, 'nested': [True, None, {'text': ''}]}},
        {'type': 'file', 'file': {'name': 'a.bin', 'mimeType': 'application/octet-stream', 'bytes': 'AAEC/w=='}},
        {'type': 'file', 'file': {'uri': 'https://example.com/a%20b', 'mimeType': 'image/png'}},
    ]
    sent = say('') | {'message': {'role': 'user', 'parts': parts}}
    (artifact,) = agent('echo').ask('tasks/send', **sent)['artifacts']
    assert artifact['parts'] == parts


def test_a_stream_tells_a_whole_artifact(agent) -> None:
    writer = agent('slow-writer')
    sent = say('sections=3 delay=20ms')
    events = list(writer.follow('tasks/sendSubscribe', **sent))
    assert 'status' in events[0]
    assert events[-1]['status']['state'] == 'completed'
    chunks = [event['artifact'] for event in events if 'artifact' in event]
    assert len(chunks) >= 3
    assert {chunk['index'] for chunk in chunks} == {0}
    assert [bool(chunk.get('append')) for chunk in chunks] == [False] + [True] * (len(chunks) - 1)
    assert [bool(chunk.get('lastChunk')) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    stored = writer.ask('tasks/get', id=sent['id'])
    assert texts(stored) == [''.join(part['text'] for chunk in chunks for part in chunk['parts'])]


def test_a_question_is_answered_under_the_same_name(agent) -> None:
    approver = agent('approver')
    question = say('may I?')
    events = list(approver.follow('tasks/sendSubscribe', **question))
    assert events[-1]['status']['state'] == 'input-required'
    assert events[-1]['status']['message']['role'] == 'agent'
    decided = approver.ask('tasks/send', **say('approve', task=question['id']))
    assert decided['status']['state'] == 'completed'


def test_a_rejected_task_has_failed_in_the_words_of_the_draft(agent) -> None:
    approver = agent('approver')
    question = say('may I?')
    approver.ask('tasks/send', **question)
    decided = approver.ask('tasks/send', **say('deny', task=question['id']))
    assert decided['status']['state'] == 'failed'
    assert decided['metadata']['a2ad']['state'] == 'rejected'


def test_a_finished_task_is_reopened_by_another_message(agent) -> None:
    echo = agent('echo')
    sent = say('a square')
    echo.ask('tasks/send', **sent)
    again = echo.ask('tasks/send', **say('make it red', task=sent['id']))
    assert (again['id'], again['status']['state']) == (sent['id'], 'completed')
    assert texts(again)[-1] == 'make it red'


def test_a_task_can_be_followed_again(agent) -> None:
    writer = agent('slow-writer')
    sent = say('sections=6 delay=50ms')
    stream = writer.follow('tasks/sendSubscribe', **sent)
    while 'artifact' not in next(stream):
        pass
    rest = list(writer.follow('tasks/resubscribe', id=sent['id']))
    assert rest[-1]['status']['state'] == 'completed'
    assert list(stream)[-1] == rest[-1]


def test_a_cancelled_task_ends_its_stream(agent) -> None:
    echo = agent('echo')
    sent = say('hold this')
    stream = echo.follow('tasks/sendSubscribe', **sent)
    next(stream)
    canceled = echo.ask('tasks/cancel', id=sent['id'])
    assert canceled['status']['state'] == 'canceled'
    assert list(stream)[-1]['status']['state'] == 'canceled'
    assert error_of(echo.call('tasks/cancel', id=sent['id'])) == -32002


@pytest.mark.parametrize('method', ['tasks/get', 'tasks/cancel'])
def test_an_unknown_task_is_not_found(agent, method: str) -> None:
    assert error_of(agent('echo').call(method, id='nobody-made-this')) == -32001


def test_refusals_are_the_errors_of_the_schema(agent) -> None:
    echo = agent('echo')
    sent = say('done at once')
    echo.ask('tasks/send', **sent)
    assert error_of(echo.call('tasks/cancel', id=sent['id'])) == -32002
    hook = {'url': 'https://example.com/hook'}
    assert error_of(echo.call('tasks/pushNotification/set', id=sent['id'], pushNotificationConfig=hook)) == -32003
    assert error_of(echo.call('tasks/pushNotification/get', id=sent['id'])) == -32003


BROKEN = [
    ('{"method": "tasks/send"', -32700),
    ('"tasks/send"', -32600),
    ('{"jsonrpc": "2.0", "id": 1}', -32600),
    ('{"jsonrpc": "1.0", "id": 1, "method": "tasks/send", "params": {}}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "tasks/unheard", "params": {}}', -32601),
    ('{"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {}}', -32602),
    ('{"id": 1, "method": "tasks/send", "params": {"id": "x"}}', -32602),
    ('{"method": "tasks/send", "params": {"id": "x", "message": {"role": "user", "parts": []}}}', -32602),
]


@pytest.mark.parametrize(('body', 'code'), BROKEN)
def test_a_broken_request_gets_an_error_of_the_schema(agent, body: str, code: int) -> None:
    echo = agent('echo')
    response = echo.http.post(echo.url, content=body, headers={'Content-Type': 'application/json'})
    assert response.status_code == 200
    assert error_of(response.json()) == code


def test_a_request_without_envelope_is_served(agent) -> None:
    echo = agent('echo')
    answer = echo.http.post(echo.url, json={'method': 'tasks/send', 'params': say('bare')}).json()
    conforms(answer, 'SendTaskResponse')
    assert texts(answer['result']) == ['bare']


def test_two_clients_follow_one_task(agent) -> None:
    writer = agent('slow-writer')
    sent = say('sections=5 delay=50ms')
    stream = writer.follow('tasks/sendSubscribe', **sent)
    next(stream)
    ends = []
    follow = lambda: ends.append(list(writer.follow('tasks/resubscribe', id=sent['id']))[-1])  # noqa: E731
    others = [threading.Thread(target=follow) for _ in range(2)]
    for other in others:
        other.start()
    last = list(stream)[-1]
    for other in others:
        other.join()
    assert ends == [last, last]


# The words of the sample that came with the draft.
@pytest.mark.parametrize('name', ['', 'currency'])
def test_an_exchange_rate_is_told(agent, name: str) -> None:
    sent = say('How much is the exchange rate for 1 USD to INR?')
    task = agent(name).ask('tasks/send', **sent)
    assert task['status']['state'] == 'completed'
    (artifact,) = task['artifacts']
    assert artifact['index'] == 0
    assert 'INR' in texts(task)[0]
    assert task['history'] == []


def test_half_a_question_is_asked_back(agent) -> None:
    currency = agent('currency')
    question = say('how much is the exchange rate for 1 USD?')
    asked = currency.ask('tasks/send', **question)
    assert asked['status']['state'] == 'input-required'
    assert asked['status']['message']['parts'][0]['type'] == 'text'
    answered = currency.ask('tasks/send', **say('CAD', task=question['id']))
    assert answered['status']['state'] == 'completed'
    assert 'CAD' in texts(answered)[0]


def test_an_exchange_rate_is_streamed(agent) -> None:
    events = list(agent('currency').follow('tasks/sendSubscribe', **say('how much is 10 USD in EUR?')))
    progress = [e['status'] for e in events if 'status' in e and e['status']['state'] == 'working']
    assert any('message' in status for status in progress)
    assert [e['artifact']['index'] for e in events if 'artifact' in e] == [0]
    assert events[-1]['status']['state'] == 'completed'
