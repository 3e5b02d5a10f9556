"""Streaming: what the agent makes is on stdout as it makes it."""

import pytest

from conftest import SDK, Run


def test_chunks_are_printed_as_one_text(run: Run) -> None:
    outcome = run('stream', 'write', '20')
    assert outcome.out == ''.join(f'chunk {n}\n' for n in range(1, 21))
    assert outcome.err.endswith(' completed\n')


def test_every_event_is_given_as_json(run: Run) -> None:
    events = run('stream', '--json', 'write 5').documents()
    kinds = [kind for event in events for kind in event]
    assert kinds == ['task', 'statusUpdate', *['artifactUpdate'] * 5, 'statusUpdate']
    task = events[0]['task']
    for event in events[1:]:
        (update,) = event.values()
        assert (update['taskId'], update['contextId']) == (task['id'], task['contextId'])
    working, done = (event['statusUpdate']['status'] for event in events if 'statusUpdate' in event)
    assert working['state'] == 'TASK_STATE_WORKING'
    assert working['message']['parts'] == [{'text': 'writing'}]
    assert done['state'] == 'TASK_STATE_COMPLETED'
    chunks = [event['artifactUpdate'] for event in events if 'artifactUpdate' in event]
    assert [chunk.get('append', False) for chunk in chunks] == [False] + [True] * 4
    assert [chunk.get('lastChunk', False) for chunk in chunks] == [False] * 4 + [True]
    assert [chunk['artifact']['parts'][0]['text'] for chunk in chunks] == [f'chunk {n}\n' for n in range(1, 6)]


def test_what_was_streamed_is_what_is_kept(run: Run) -> None:
    events = run('stream', '--json', 'write 7').documents()
    kept = run('tasks get', events[0]['task']['id'])
    assert kept.out == ''.join(f'chunk {n}\n' for n in range(1, 8))


def test_a_bare_answer_is_printed(run: Run) -> None:
    assert run('stream', 'hello').out == 'Hello World\n'
    (event,) = run('stream', '--json', 'hello').documents()
    assert event['message']['parts'] == [{'text': 'Hello World'}]


def test_a_stream_ends_when_the_agent_asks(run: Run) -> None:
    outcome = run('stream', 'ask', code=4)
    assert outcome.out == 'Which currency?\n'
    assert 'a2ad reply ' in outcome.err


@pytest.mark.parametrize(('word', 'said'), [('fail', 'it did not work'), ('reject', 'not my business')])
def test_a_stream_ends_badly_with_its_task(run: Run, word: str, said: str) -> None:
    outcome = run('stream', word, code=3)
    assert outcome.out == ''
    assert said in outcome.err


@pytest.mark.skipif(SDK == 'python03', reason='this SDK leaves the task of a broken agent as it is, for ever')
def test_an_agent_that_breaks_ends_its_stream(run: Run) -> None:
    # One SDK says so in an event of the task, the other in an error.
    code = {'python': 8, 'javascript': 3}[SDK]
    assert 'the sample agent crashed' in run('stream', 'crash', code=code).err


@pytest.mark.skipif(SDK != 'python03', reason='this SDK ends the task of a broken agent')
def test_a_stream_that_never_ends_is_left_when_the_time_is_up(run: Run) -> None:
    outcome = run('stream', '--timeout', '1s', 'crash', code=7)
    assert 'no answer from http' in outcome.err and ' within 1s' in outcome.err
