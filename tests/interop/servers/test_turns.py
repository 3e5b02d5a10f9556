"""Tasks that require input and continue after a reply."""

import pytest

from conftest import Run


@pytest.mark.parametrize('flags', [[], ['--blocking']], ids=['default', 'blocking'])
def test_reply_completes_the_task(run: Run, flags: list[str]) -> None:
    waiting = run('send', '--json', 'ask', code=4).document()['task']
    assert waiting['status']['state'] == 'TASK_STATE_INPUT_REQUIRED'
    outcome = run('reply', *flags, waiting['id'], 'euros')
    assert outcome.out == 'you said euros\n'
    assert outcome.err == f'task {waiting["id"]} completed\n'


def test_task_after_a_reply_is_printed_as_json(run: Run) -> None:
    waiting = run('send', '--json', 'ask', code=4).document()['task']
    finished = run('reply', '--json', waiting['id'], 'euros').document()['task']
    assert (finished['id'], finished['contextId']) == (waiting['id'], waiting['contextId'])
    assert finished['status']['state'] == 'TASK_STATE_COMPLETED'


def test_reply_is_read_from_stdin(run: Run) -> None:
    waiting = run('send', '--json', 'ask', code=4).document()['task']
    assert run('reply', waiting['id'], stdin='yen').out == 'you said yen\n'


def test_second_turn_can_be_streamed(run: Run) -> None:
    waiting = run('stream', '--json', 'ask', code=4).documents()[0]['task']
    outcome = run('stream', '--task', waiting['id'], 'pounds')
    assert outcome.out == 'you said pounds\n'


def test_task_that_requires_credentials_continues(run: Run) -> None:
    waiting = run('send', '--json', 'login', code=4).document()['task']
    assert waiting['status']['state'] == 'TASK_STATE_AUTH_REQUIRED'
    assert run('reply', waiting['id'], 'me').out == 'you said me\n'


@pytest.mark.parametrize('verb', ['send', 'stream'])
def test_finished_task_rejects_messages(run: Run, verb: str) -> None:
    done = run('send', '--json', 'write 1').document()['task']
    outcome = run(verb, '--task', done['id'], 'more', code=8)
    assert outcome.out == ''
    assert 'the agent answered with an error: ' in outcome.err


@pytest.mark.parametrize('verb', ['send --task', 'stream --task', 'reply'])
def test_unknown_task_is_not_found(run: Run, verb: str, url: str) -> None:
    verb, *flag = verb.split()
    outcome = run(verb, *flag, 'task-that-nobody-ever-made', 'more', code=6)
    assert outcome.out == ''
    assert 'the agent answered with an error: ' in outcome.err
