"""Sending without streaming, and reading back what was stored."""

from uuid import uuid4

import pytest

from a2a.helpers import new_data_part, new_raw_part, new_text_part, new_url_part
from a2a.types import (
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SubscribeToTaskRequest,
    TaskState,
)

from conftest import BINDINGS, Connect
from helpers import TERMINAL, send, user_message


async def test_blocking_send_returns_the_finished_task(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    message = user_message('hello')
    task = await send(client, message)
    assert task.id and task.context_id
    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert task.status.HasField('timestamp')
    assert task.history[0].message_id == message.message_id
    assert task.history[0].role == Role.ROLE_USER
    assert list(task.history[0].parts) == list(message.parts)


async def test_every_kind_of_part_is_echoed_unchanged(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    parts = [
        new_text_part('Grüße, 世界 \u2028 "quoted"'),
        new_data_part({'number': 1.5, 'nested': [True, None, {'text': ''}], 'empty': {}}),
        new_raw_part(bytes(range(256)), media_type='application/octet-stream', filename='all.bin'),
        new_url_part('https://example.com/a%20b?c=d', media_type='image/png', filename='b.png'),
    ]
    task = await send(client, Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=parts))
    (artifact,) = task.artifacts
    assert 'echo-result' in (artifact.artifact_id, artifact.name)
    assert list(artifact.parts) == parts


async def test_stored_task_equals_the_response_in_every_binding(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    created = await send(client, user_message('keep this'))
    for binding in BINDINGS:
        other = await connect('echo', streaming=False, binding=binding)
        assert await other.get_task(GetTaskRequest(id=created.id)) == created


@pytest.mark.parametrize(('length', 'expected'), [(0, 0), (1, 1)])
async def test_history_has_the_requested_length(connect: Connect, length: int, expected: int) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('remember'))
    stored = await client.get_task(GetTaskRequest(id=task.id, history_length=length))
    assert len(stored.history) == expected


async def test_non_blocking_send_returns_before_the_end(connect: Connect) -> None:
    client = await connect('slow-writer', streaming=False, polling=True)
    subscriber = await connect('slow-writer')
    task = await send(client, user_message('sections=5 delay=100ms'))
    assert task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
    async for event in subscriber.subscribe(SubscribeToTaskRequest(id=task.id)):
        last = event
    assert last.status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_tasks_of_one_context_are_paged_newest_first(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    first = await send(client, user_message('first'))
    context = first.context_id
    later = [await send(client, user_message(text, context_id=context)) for text in ('second', 'third')]
    assert [task.context_id for task in later] == [context, context]
    newest_first = [task.id for task in reversed([first, *later])]

    page = await client.list_tasks(ListTasksRequest(context_id=context, page_size=2))
    assert [task.id for task in page.tasks] == newest_first[:2]
    assert (page.total_size, page.page_size) == (3, 2)
    assert page.next_page_token
    rest = await client.list_tasks(
        ListTasksRequest(context_id=context, page_size=2, page_token=page.next_page_token)
    )
    assert [task.id for task in rest.tasks] == newest_first[2:]
    assert rest.total_size == 3
    assert rest.next_page_token == ''


async def test_list_is_filtered_by_state_and_includes_artifacts_on_request(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('one of its kind'))

    async def listed(**wanted: object) -> list:
        page = await client.list_tasks(ListTasksRequest(context_id=task.context_id, **wanted))
        return list(page.tasks)

    (plain,) = await listed()
    assert plain.status == task.status
    assert not plain.artifacts
    (full,) = await listed(include_artifacts=True, status=TaskState.TASK_STATE_COMPLETED)
    assert list(full.artifacts) == list(task.artifacts)
    for state in TERMINAL - {TaskState.TASK_STATE_COMPLETED}:
        assert await listed(status=state) == []
