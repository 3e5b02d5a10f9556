"""Streaming: the output of the agent is printed as it arrives."""

import pytest

from conftest import SDK, Run


def test_chunks_are_printed_as_one_text(run: Run) -> None:
    outcome = run('stream', 'write', '20')
    assert outcome.out == ''.join(f'chunk {n}\n' for n in range(1, 21))
    assert outcome.err.endswith(' completed\n')


def test_every_event_is_printed_as_json(run: Run) -> None:
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


def test_streamed_text_equals_the_stored_text(run: Run) -> None:
    events = run('stream', '--json', 'write 7').documents()
    stored = run('tasks get', events[0]['task']['id'])
    assert stored.out == ''.join(f'chunk {n}\n' for n in range(1, 8))


def test_message_response_is_printed(run: Run) -> None:
    assert run('stream', 'hello').out == 'Hello World\n'
    (event,) = run('stream', '--json', 'hello').documents()
    assert event['message']['parts'] == [{'text': 'Hello World'}]


def test_stream_ends_when_input_is_required(run: Run) -> None:
    outcome = run('stream', 'ask', code=4)
    assert outcome.out == 'Which currency?\n'
    assert 'a2ad reply ' in outcome.err


@pytest.mark.parametrize(('command', 'reason'), [('fail', 'it did not work'), ('reject', 'not my business')])
def test_failed_task_ends_the_stream_and_sets_the_exit_code(run: Run, command: str, reason: str) -> None:
    outcome = run('stream', command, code=3)
    assert outcome.out == ''
    assert reason in outcome.err


@pytest.mark.skipif(SDK == 'python03', reason='this SDK never ends the task of a crashed agent')
def test_crashed_agent_ends_the_stream(run: Run) -> None:
    # One SDK reports the crash in an event of the task, the other in an error.
    code = {'python': 8, 'javascript': 3}[SDK]
    assert 'the sample agent crashed' in run('stream', 'crash', code=code).err


@pytest.mark.skipif(SDK != 'python03', reason='this SDK ends the task of a crashed agent')
def test_stream_times_out_if_it_never_ends(run: Run) -> None:
    outcome = run('stream', '--timeout', '1s', 'crash', code=7)
    assert 'no answer from http' in outcome.err and ' within 1s' in outcome.err
