"""Cancellation: accepted once, final, and rejected afterwards."""

from a2a.types import TaskState

from conftest import Connect, StartTask
from helpers import TERMINAL, ProtocolError, cancel, expect_error, get, send, user_message


async def test_canceled_task_stays_canceled(connect: Connect, start_task: StartTask) -> None:
    client = await connect('echo')
    task = await start_task('echo', 'hold this')
    assert task.status.state not in TERMINAL
    canceled = await cancel(client, task)
    assert (canceled.id, canceled.status.state) == (task.id, TaskState.canceled)
    with expect_error(ProtocolError.NOT_CANCELABLE):
        await cancel(client, task)
    assert (await get(client, task)).status == canceled.status


async def test_waiting_task_can_be_canceled(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    canceled = await cancel(client, await send(client, user_message('may I?')))
    assert canceled.status.state == TaskState.canceled


async def test_finished_task_is_not_cancelable_and_unchanged(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('done at once'))
    with expect_error(ProtocolError.NOT_CANCELABLE):
        await cancel(client, task)
    assert await get(client, task) == task
