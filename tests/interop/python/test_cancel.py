"""Cancelling: granted once, final, and refused ever after."""

import pytest

from a2a.types import CancelTaskRequest, GetTaskRequest, TaskState
from a2a.utils.errors import TaskNotCancelableError

from conftest import Connect
from talk import TERMINAL, ask, say


async def test_a_running_task_is_cancelled_for_good(connect: Connect) -> None:
    client = await connect('echo', streaming=False, polling=True)
    task = await ask(client, say('hold this'))
    assert task.status.state not in TERMINAL
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert (canceled.id, canceled.status.state) == (task.id, TaskState.TASK_STATE_CANCELED)

    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert stored.status == canceled.status


async def test_a_waiting_task_can_be_cancelled(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    task = await ask(client, say('may I?'))
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED


async def test_a_writing_task_stops_writing(connect: Connect) -> None:
    client = await connect('slow-writer', streaming=False, polling=True)
    task = await ask(client, say('sections=50 delay=100ms'))
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert (stored.status, list(stored.artifacts)) == (canceled.status, list(canceled.artifacts))


async def test_a_finished_task_is_not_cancelable_and_stays_as_it_is(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('done at once'))
    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    assert await client.get_task(GetTaskRequest(id=task.id)) == task
