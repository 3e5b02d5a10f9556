"""Tasks that ask, and are answered."""

import pytest

from conftest import Run


@pytest.mark.parametrize('waiting', [[], ['--blocking']], ids=['following', 'blocking'])
def test_an_answer_takes_the_task_to_its_end(run: Run, waiting: list[str]) -> None:
    asked = run('send', '--json', 'ask', code=4).document()['task']
    assert asked['status']['state'] == 'TASK_STATE_INPUT_REQUIRED'
    outcome = run('reply', *waiting, asked['id'], 'euros')
    assert outcome.out == 'you said euros\n'
    assert outcome.err == f'task {asked["id"]} completed\n'


def test_an_answer_is_given_as_json(run: Run) -> None:
    asked = run('send', '--json', 'ask', code=4).document()['task']
    answered = run('reply', '--json', asked['id'], 'euros').document()['task']
    assert (answered['id'], answered['contextId']) == (asked['id'], asked['contextId'])
    assert answered['status']['state'] == 'TASK_STATE_COMPLETED'


def test_an_answer_comes_from_stdin(run: Run) -> None:
    asked = run('send', '--json', 'ask', code=4).document()['task']
    assert run('reply', asked['id'], stdin='yen').out == 'you said yen\n'


def test_the_second_turn_can_be_streamed(run: Run) -> None:
    asked = run('stream', '--json', 'ask', code=4).documents()[0]['task']
    outcome = run('stream', '--task', asked['id'], 'pounds')
    assert outcome.out == 'you said pounds\n'


def test_a_task_that_needs_credentials_goes_on(run: Run) -> None:
    asked = run('send', '--json', 'login', code=4).document()['task']
    assert asked['status']['state'] == 'TASK_STATE_AUTH_REQUIRED'
    assert run('reply', asked['id'], 'me').out == 'you said me\n'


@pytest.mark.parametrize('verb', ['send', 'stream'])
def test_a_finished_task_takes_no_message(run: Run, verb: str) -> None:
    done = run('send', '--json', 'write 1').document()['task']
    outcome = run(verb, '--task', done['id'], 'more', code=8)
    assert outcome.out == ''
    assert 'the agent answered with an error: ' in outcome.err


@pytest.mark.parametrize('verb', ['send --task', 'stream --task', 'reply'])
def test_an_unknown_task_is_not_found(run: Run, verb: str, url: str) -> None:
    verb, *flag = verb.split()
    outcome = run(verb, *flag, 'task-that-nobody-ever-made', 'more', code=6)
    assert outcome.out == ''
    assert 'the agent answered with an error: ' in outcome.err
