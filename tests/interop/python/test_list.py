"""Paging through many tasks, with each filter."""

import asyncio
from uuid import uuid4

import pytest

from a2a.types import CancelTaskRequest, ListTasksRequest, Task, TaskState

from conftest import Connect
from helpers import send, user_message


async def list_all(client, page_size: int, **wanted: object) -> tuple[list[Task], list[int]]:
    """Every task that matches a filter, page by page, and the total of each page."""
    tasks, totals, token = [], [], ''
    while True:
        page = await client.list_tasks(ListTasksRequest(page_size=page_size, page_token=token, **wanted))
        assert page.page_size == page_size
        assert len(page.tasks) <= page_size
        tasks.extend(page.tasks)
        totals.append(page.total_size)
        token = page.next_page_token
        if not token:
            return tasks, totals


async def test_paging_returns_every_task_once_newest_first(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    context = str(uuid4())
    sent = [await send(client, user_message(f'number {n}', context_id=context)) for n in range(45)]
    for page_size in (1, 7, 45, 100):
        tasks, totals = await list_all(client, page_size, context_id=context)
        assert [task.id for task in tasks] == [task.id for task in reversed(sent)]
        assert set(totals) == {45}


async def test_filters_by_state_and_time_return_the_matching_tasks(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    context = str(uuid4())
    waiting = [await send(client, user_message(f'request {n}', context_id=context)) for n in range(12)]
    for task in waiting[:4]:
        await send(client, user_message('approve', task))
    for task in waiting[4:7]:
        await client.cancel_task(CancelTaskRequest(id=task.id))
    wanted = {
        TaskState.TASK_STATE_COMPLETED: waiting[:4],
        TaskState.TASK_STATE_CANCELED: waiting[4:7],
        TaskState.TASK_STATE_INPUT_REQUIRED: waiting[7:],
        TaskState.TASK_STATE_WORKING: [],
    }
    for state, expected in wanted.items():
        tasks, totals = await list_all(client, 2, context_id=context, status=state)
        assert {task.id for task in tasks} == {task.id for task in expected}
        assert set(totals) == {len(expected)}
        # Without the context filter, the tasks of all contexts in that state are listed, these among them.
        everywhere, _ = await list_all(client, 100, status=state)
        assert {task.id for task in expected} <= {task.id for task in everywhere}
        assert all(task.status.state == state for task in everywhere)

    everything, _ = await list_all(client, 5, context_id=context)
    times = [task.status.timestamp.ToMilliseconds() for task in everything]
    assert times == sorted(times, reverse=True)
    middle = everything[5].status.timestamp
    since, _ = await list_all(client, 3, context_id=context, status_timestamp_after=middle)
    assert [task.id for task in since] == [
        task.id for task in everything if task.status.timestamp.ToMilliseconds() >= middle.ToMilliseconds()
    ]


async def test_paging_returns_each_unchanged_task_once_while_others_change(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    context = str(uuid4())
    waiting = [await send(client, user_message(f'request {n}', context_id=context)) for n in range(20)]
    first = await client.list_tasks(ListTasksRequest(context_id=context, page_size=5))
    # Meanwhile the oldest tasks move to the front of the list: paging still returns no task twice.
    await asyncio.gather(*(send(client, user_message('approve', task)) for task in waiting[:3]))
    rest = []
    token = first.next_page_token
    while token:
        page = await client.list_tasks(ListTasksRequest(context_id=context, page_size=5, page_token=token))
        rest.extend(page.tasks)
        token = page.next_page_token
    listed = [task.id for task in [*first.tasks, *rest]]
    assert len(listed) == len(set(listed))
    assert {task.id for task in waiting[3:]} <= set(listed)


async def test_page_token_of_another_filter_is_rejected(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    context = str(uuid4())
    for n in range(3):
        await send(client, user_message(f'number {n}', context_id=context))
    page = await client.list_tasks(ListTasksRequest(context_id=context, page_size=1))
    for wanted in ({'context_id': str(uuid4())}, {}, {'status': TaskState.TASK_STATE_COMPLETED}):
        with pytest.raises(Exception, match='pageToken'):
            await client.list_tasks(ListTasksRequest(page_size=1, page_token=page.next_page_token, **wanted))
