"""Sending and waiting: the result is on stdout, and the exit code shows the final state."""

import base64

from pathlib import Path

import pytest

from conftest import SDK, Run


def test_message_response_is_printed(run: Run) -> None:
    outcome = run('send', 'hello')
    assert (outcome.out, outcome.err) == ('Hello World\n', '')
    message = run('send', '--json', 'hello').document()['message']
    assert (message['role'], message['parts']) == ('ROLE_AGENT', [{'text': 'Hello World'}])


@pytest.mark.parametrize('flags', [[], ['--blocking']], ids=['default', 'blocking'])
def test_result_is_printed_when_the_task_completes(run: Run, flags: list[str]) -> None:
    outcome = run('send', *flags, 'write', '3')
    assert outcome.out == 'chunk 1\nchunk 2\nchunk 3\n'
    assert outcome.err.endswith(' completed\n')
    task = run('send', '--json', *flags, 'write 2').document()['task']
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    (artifact,) = task['artifacts']
    assert ''.join(part['text'] for part in artifact['parts']) == 'chunk 1\nchunk 2\n'


def test_text_data_and_files_are_sent_unchanged(run: Run, tmp_path: Path) -> None:
    content = bytes(range(256))
    table = tmp_path / 'table.csv'
    table.write_bytes(content)
    args = ['Grüße,', '世界', '"quoted"']
    outcome = run('send', '--json', '--data', '{"n":1.5,"list":[true,null,{"":""}]}', '-f', str(table), *args)
    (artifact,) = outcome.document()['task']['artifacts']
    text, data, file = artifact['parts']
    assert text == {'text': 'Grüße, 世界 "quoted"'}
    assert data == {'data': {'n': 1.5, 'list': [True, None, {'': ''}]}}
    assert base64.b64decode(file['raw']) == content
    assert (file['filename'], file['mediaType']) == ('table.csv', 'text/csv')


def test_returned_file_is_mentioned_and_data_is_printed(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / 'dot.png'
    picture.write_bytes(b'\x89PNG')
    outcome = run('send', '--data', '{"rate":1.08}', '--file', str(picture), 'look')
    assert outcome.out == 'look\n{"rate":1.08}\n'
    assert 'dot.png (image/png, 4 bytes)' in outcome.err


@pytest.mark.parametrize('args', [[], ['-']], ids=['no argument', 'dash'])
def test_text_is_read_from_stdin(run: Run, args: list[str]) -> None:
    piped = 'two lines\nof words\n'
    assert run('send', *args, stdin=piped).out == piped


def test_context_continues_with_a_new_task(run: Run) -> None:
    first = run('send', '--json', 'first').document()['task']
    second = run('send', '--json', '--context', first['contextId'], 'second').document()['task']
    assert second['contextId'] == first['contextId']
    assert second['id'] != first['id']


ENDS = [('fail', 'failed', 'it did not work'), ('reject', 'rejected', 'not my business')]


@pytest.mark.parametrize(('command', 'state', 'reason'), ENDS)
def test_failed_task_prints_the_reason_and_sets_the_exit_code(run: Run, command: str, state: str, reason: str) -> None:
    outcome = run('send', command, code=3)
    assert outcome.out == ''
    assert outcome.err.endswith(f' {state}: {reason}\n')
    task = run('send', '--json', command, code=3).document()['task']
    assert task['status']['state'] == f'TASK_STATE_{state.upper()}'


WAITS = [('ask', 'input-required', 'Which currency?'), ('login', 'auth-required', 'Who are you?')]


@pytest.mark.parametrize(('command', 'state', 'question'), WAITS)
def test_question_is_printed_and_sets_the_exit_code(run: Run, command: str, state: str, question: str) -> None:
    outcome = run('send', command, code=4)
    assert outcome.out == f'{question}\n'
    assert f' {state}; ' in outcome.err
    assert 'a2ad reply ' in outcome.err


@pytest.mark.skipif(SDK == 'python03', reason='this SDK never ends the task of a crashed agent')
def test_crashed_agent_fails_the_task(run: Run) -> None:
    outcome = run('send', 'crash', code=3)
    assert ' failed' in outcome.err


@pytest.mark.skipif(SDK != 'python03', reason='this SDK ends the task of a crashed agent')
def test_send_times_out_if_the_task_never_ends(run: Run) -> None:
    outcome = run('send', '--timeout', '1s', 'crash', code=7)
    assert 'no answer from http' in outcome.err and ' within 1s' in outcome.err
    assert 'a2ad tasks watch ' in outcome.err


def test_crash_in_a_blocking_call_is_reported(run: Run) -> None:
    # One SDK reports the crash in the task, the others in an error.
    assert 'the sample agent crashed' in run('send', '--blocking', 'crash', code=3 if SDK == 'javascript' else 8).err
