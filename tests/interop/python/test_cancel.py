"""Cancellation: accepted once, final, and rejected afterwards."""

import pytest

from a2a.types import CancelTaskRequest, GetTaskRequest, TaskState
from a2a.utils.errors import TaskNotCancelableError

from conftest import Connect
from helpers import TERMINAL, send, user_message


async def test_canceled_task_stays_canceled(connect: Connect) -> None:
    client = await connect('echo', streaming=False, polling=True)
    task = await send(client, user_message('hold this'))
    assert task.status.state not in TERMINAL
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert (canceled.id, canceled.status.state) == (task.id, TaskState.TASK_STATE_CANCELED)

    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert stored.status == canceled.status


async def test_waiting_task_can_be_canceled(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    task = await send(client, user_message('may I?'))
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED


async def test_canceled_task_gets_no_more_artifacts(connect: Connect) -> None:
    client = await connect('slow-writer', streaming=False, polling=True)
    task = await send(client, user_message('sections=50 delay=100ms'))
    canceled = await client.cancel_task(CancelTaskRequest(id=task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    stored = await client.get_task(GetTaskRequest(id=task.id))
    assert (stored.status, list(stored.artifacts)) == (canceled.status, list(canceled.artifacts))


async def test_finished_task_is_not_cancelable_and_unchanged(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('done at once'))
    with pytest.raises(TaskNotCancelableError):
        await client.cancel_task(CancelTaskRequest(id=task.id))
    assert await client.get_task(GetTaskRequest(id=task.id)) == task
