"""Reading, listing and cancelling tasks."""

from collections.abc import Callable
from typing import Any

import pytest

from conftest import SDK, Run


StartTask = Callable[..., dict[str, Any]]


def test_stored_task_is_printed(run: Run) -> None:
    sent = run('send', '--json', 'write 2').document()['task']
    outcome = run('tasks get', sent['id'])
    assert outcome.out == 'chunk 1\nchunk 2\n'
    assert outcome.err == f'task {sent["id"]} completed\n'


def test_task_is_printed_as_json_with_the_requested_history(run: Run) -> None:
    sent = run('send', '--json', 'ask', code=4).document()['task']
    task = run('tasks get', '--json', '--history', '1', sent['id'], code=4).document()
    assert (task['id'], task['status']['state']) == (sent['id'], 'TASK_STATE_INPUT_REQUIRED')
    assert len(task['history']) == 1


def test_reading_a_failed_task_sets_the_exit_code_of_its_state(run: Run) -> None:
    sent = run('send', '--json', 'fail', code=3).document()['task']
    assert 'failed: it did not work' in run('tasks get', sent['id'], code=3).err


@pytest.mark.parametrize('verb', ['tasks get', 'tasks cancel'])
def test_unknown_task_is_not_found(run: Run, verb: str) -> None:
    outcome = run(verb, 'task-that-nobody-ever-made', code=6)
    assert outcome.out == ''
    assert 'the agent answered with an error: ' in outcome.err


def test_canceled_task_stays_canceled(run: Run, start_task: StartTask) -> None:
    task = start_task('hold')
    assert task['status']['state'] in ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING')
    assert run('tasks cancel', task['id']).err == f'task {task["id"]} canceled\n'
    assert run('tasks get', task['id'], code=3).err == f'task {task["id"]} canceled\n'
    # One SDK accepts a second cancel of the same task; the others reject it.
    run('tasks cancel', task['id'], code=0 if SDK == 'javascript' else 8)
    assert run('tasks get', task['id'], code=3).err == f'task {task["id"]} canceled\n'


def test_canceled_task_is_printed_as_json(run: Run, start_task: StartTask) -> None:
    task = start_task('hold')
    canceled = run('tasks cancel', '--json', task['id']).document()
    assert (canceled['id'], canceled['status']['state']) == (task['id'], 'TASK_STATE_CANCELED')


def test_finished_task_is_not_cancelable(run: Run) -> None:
    done = run('send', '--json', 'write 1').document()['task']
    run('tasks cancel', done['id'], code=8)
    assert run('tasks get', done['id']).err.endswith(' completed\n')


def test_tasks_are_listed_newest_first(run: Run, version: str) -> None:
    if version == '0.3':
        pytest.skip('this version has no ListTasks')
    first = run('send', '--json', 'one').document()['task']
    context = ['--context', first['contextId']]
    second = run('send', '--json', *context, 'fail', code=3).document()['task']
    ids = lambda *args: [line.split()[0] for line in run('tasks ls', *context, *args).out.splitlines()]
    assert ids() == [second['id'], first['id']]
    assert ids('--status', 'failed') == [second['id']]
    assert ids('--limit', '1') == [second['id']]
    listed = run('tasks ls', '--json', *context).document()
    assert [task['id'] for task in listed['tasks']] == [second['id'], first['id']]
    assert listed['totalSize'] == 2


def test_list_without_limit_reads_all_pages(run: Run, version: str) -> None:
    if version == '0.3':
        pytest.skip('this version has no ListTasks')
    first = run('send', '--json', 'one').document()['task']
    # More tasks than fit on one page.
    for _ in range(104):
        run('send', '--async', '--context', first['contextId'], 'more')
    whole = run('tasks ls', '--context', first['contextId'], '--limit', '0')
    assert len({line.split()[0] for line in whole.out.splitlines()}) == 105
    part = run('tasks ls', '--context', first['contextId'])
    assert len(part.out.splitlines()) == 100
    assert '100 of 105 tasks' in part.err


def test_list_is_rejected_in_a_version_without_it(run: Run, version: str) -> None:
    if version != '0.3':
        pytest.skip('this version has ListTasks')
    outcome = run('tasks ls', code=8)
    assert outcome.out == ''
    assert 'A2A 0.3 has no ListTasks' in outcome.err
