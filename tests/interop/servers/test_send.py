"""Sending and waiting: what becomes of the message is on stdout, how it went in the exit code."""

import base64

from pathlib import Path

import pytest

from conftest import SDK, Run


def test_a_bare_answer_is_printed(run: Run) -> None:
    outcome = run('send', 'hello')
    assert (outcome.out, outcome.err) == ('Hello World\n', '')
    message = run('send', '--json', 'hello').document()['message']
    assert (message['role'], message['parts']) == ('ROLE_AGENT', [{'text': 'Hello World'}])


@pytest.mark.parametrize('waiting', [[], ['--blocking']], ids=['following', 'blocking'])
def test_a_result_is_printed_when_the_task_is_done(run: Run, waiting: list[str]) -> None:
    outcome = run('send', *waiting, 'write', '3')
    assert outcome.out == 'chunk 1\nchunk 2\nchunk 3\n'
    assert outcome.err.endswith(' completed\n')
    task = run('send', '--json', *waiting, 'write 2').document()['task']
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    (artifact,) = task['artifacts']
    assert ''.join(part['text'] for part in artifact['parts']) == 'chunk 1\nchunk 2\n'


def test_words_data_and_files_arrive_as_they_were_given(run: Run, tmp_path: Path) -> None:
    content = bytes(range(256))
    table = tmp_path / 'table.csv'
    table.write_bytes(content)
    words = ['Grüße,', '世界', '"quoted"']
    outcome = run('send', '--json', '--data', '{"n":1.5,"list":[true,null,{"":""}]}', '-f', str(table), *words)
    (artifact,) = outcome.document()['task']['artifacts']
    text, data, file = artifact['parts']
    assert text == {'text': 'Grüße, 世界 "quoted"'}
    assert data == {'data': {'n': 1.5, 'list': [True, None, {'': ''}]}}
    assert base64.b64decode(file['raw']) == content
    assert (file['filename'], file['mediaType']) == ('table.csv', 'text/csv')


def test_a_file_in_the_answer_is_mentioned_and_data_is_printed(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / 'dot.png'
    picture.write_bytes(b'\x89PNG')
    outcome = run('send', '--data', '{"rate":1.08}', '--file', str(picture), 'look')
    assert outcome.out == 'look\n{"rate":1.08}\n'
    assert 'dot.png (image/png, 4 bytes)' in outcome.err


@pytest.mark.parametrize('words', [[], ['-']], ids=['nothing typed', 'a dash'])
def test_words_come_from_stdin(run: Run, words: list[str]) -> None:
    piped = 'two lines\nof words\n'
    assert run('send', *words, stdin=piped).out == piped


def test_a_conversation_goes_on(run: Run) -> None:
    first = run('send', '--json', 'first').document()['task']
    second = run('send', '--json', '--context', first['contextId'], 'second').document()['task']
    assert second['contextId'] == first['contextId']
    assert second['id'] != first['id']


ENDS = [('fail', 'failed', 'it did not work'), ('reject', 'rejected', 'not my business')]


@pytest.mark.parametrize(('word', 'state', 'said'), ENDS)
def test_a_bad_end_says_why_and_is_an_exit_code(run: Run, word: str, state: str, said: str) -> None:
    outcome = run('send', word, code=3)
    assert outcome.out == ''
    assert outcome.err.endswith(f' {state}: {said}\n')
    task = run('send', '--json', word, code=3).document()['task']
    assert task['status']['state'] == f'TASK_STATE_{state.upper()}'


WAITS = [('ask', 'input-required', 'Which currency?'), ('login', 'auth-required', 'Who are you?')]


@pytest.mark.parametrize(('word', 'state', 'asked'), WAITS)
def test_a_question_is_printed_and_is_an_exit_code(run: Run, word: str, state: str, asked: str) -> None:
    outcome = run('send', word, code=4)
    assert outcome.out == f'{asked}\n'
    assert f' {state}; ' in outcome.err
    assert 'a2ad reply ' in outcome.err


@pytest.mark.skipif(SDK == 'python03', reason='this SDK leaves the task of a broken agent as it is, for ever')
def test_an_agent_that_breaks_is_a_bad_end(run: Run) -> None:
    outcome = run('send', 'crash', code=3)
    assert ' failed' in outcome.err


@pytest.mark.skipif(SDK != 'python03', reason='this SDK ends the task of a broken agent')
def test_a_task_that_never_ends_is_left_when_the_time_is_up(run: Run) -> None:
    outcome = run('send', '--timeout', '1s', 'crash', code=7)
    assert 'no answer from http' in outcome.err and ' within 1s' in outcome.err
    assert 'a2ad tasks watch ' in outcome.err


def test_a_broken_agent_behind_a_blocking_call_is_heard(run: Run) -> None:
    # One SDK says so in the task, the others in an error.
    assert 'the sample agent crashed' in run('send', '--blocking', 'crash', code=3 if SDK == 'javascript' else 8).err
