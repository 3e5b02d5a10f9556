"""Cancelling: granted once, final, and refused ever after."""

from a2a.types import TaskState

from conftest import Begin, Connect
from talk import TERMINAL, Refusal, ask, cancel, get, refused, say


async def test_a_running_task_is_cancelled_for_good(connect: Connect, begin: Begin) -> None:
    client = await connect('echo')
    task = await begin('echo', 'hold this')
    assert task.status.state not in TERMINAL
    canceled = await cancel(client, task)
    assert (canceled.id, canceled.status.state) == (task.id, TaskState.canceled)
    with refused(Refusal.NOT_CANCELABLE):
        await cancel(client, task)
    assert (await get(client, task)).status == canceled.status


async def test_a_waiting_task_can_be_cancelled(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    canceled = await cancel(client, await ask(client, say('may I?')))
    assert canceled.status.state == TaskState.canceled


async def test_a_finished_task_is_not_cancelable_and_stays_as_it_is(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('done at once'))
    with refused(Refusal.NOT_CANCELABLE):
        await cancel(client, task)
    assert await get(client, task) == task
