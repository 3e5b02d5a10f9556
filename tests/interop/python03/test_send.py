"""Sending without streaming, and reading back what was stored."""

import base64

import pytest

from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    MessageSendConfiguration,
    Part,
    Role,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)

from conftest import JSONRPC, Connect, StartTask
from helpers import assert_ends_once, collect, comparable, get, message, send, subscribe, user_message


async def test_blocking_send_returns_the_finished_task(connect: Connect, binding: TransportProtocol) -> None:
    client = await connect('echo', streaming=False)
    request = user_message('hello')
    task = await send(client, request)
    assert task.id and task.context_id
    assert task.kind == 'task'
    assert task.status.state == TaskState.completed
    # The SDK reads timestamps only over JSON-RPC.
    assert task.status.timestamp or binding != JSONRPC
    assert task.history[0].message_id == request.message_id
    assert task.history[0].role == Role.user
    assert comparable(task.history[0].parts) == comparable(request.parts)


async def test_every_kind_of_part_is_echoed_unchanged(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    raw = base64.b64encode(bytes(range(256))).decode()
    parts = [
        Part(TextPart(text='Grüße, 世界 \u2028 "quoted"')),
        Part(DataPart(data={'number': 1.5, 'nested': [True, None, {'text': ''}], 'empty': {}})),
        Part(FilePart(file=FileWithBytes(bytes=raw, mime_type='application/octet-stream', name='all.bin'))),
        Part(FilePart(file=FileWithUri(uri='https://example.com/a%20b?c=d', mime_type='image/png', name='b.png'))),
        Part(TextPart(text='with metadata', metadata={'mine': {'n': 3}})),
    ]
    task = await send(client, message(parts))
    (artifact,) = task.artifacts
    assert comparable(artifact.parts) == comparable(parts)


async def test_stored_task_equals_the_response(connect: Connect) -> None:
    created = await send(await connect('echo', streaming=False), user_message('keep this'))
    assert await get(await connect('echo'), created) == created


async def test_history_has_the_requested_length(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    waiting = await send(client, user_message('may I?'))
    whole = (await send(client, user_message('approve', waiting))).history
    assert len(whole) >= 2
    # In this version, a length of 0 means no limit.
    for length, expected in [(None, whole), (0, whole), (1, whole[-1:]), (100, whole)]:
        stored = await client.get_task(TaskQueryParams(id=waiting.id, history_length=length))
        assert stored.history == expected


async def test_non_blocking_send_returns_before_the_end(connect: Connect, start_task: StartTask) -> None:
    subscriber = await connect('slow-writer')
    task = await start_task('slow-writer', 'sections=5 delay=100ms')
    assert task.status.state in (TaskState.submitted, TaskState.working)
    result = await collect(subscribe(subscriber, task))
    assert_ends_once(result, TaskState.completed)


async def test_send_without_the_blocking_field_waits_over_json_rpc(
    connect: Connect, binding: TransportProtocol
) -> None:
    if binding != JSONRPC:
        pytest.skip('in protobuf an absent `blocking` is read as false')
    client = await connect('slow-writer', streaming=False, polling=True)
    unset = MessageSendConfiguration(blocking=None)
    ((task, _),) = [e async for e in client.send_message(user_message('sections=2 delay=20ms'), configuration=unset)]
    assert task.status.state == TaskState.completed


async def test_context_continues_with_a_new_task(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    first = await send(client, user_message('first'))
    request = user_message('second')
    request.context_id = first.context_id
    second = await send(client, request)
    assert second.context_id == first.context_id
    assert second.id != first.id
