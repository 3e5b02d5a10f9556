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

from conftest import JSONRPC, Begin, Connect
from talk import assert_ends_once, ask, get, listen, message, plain, say, watch


async def test_a_blocking_send_returns_the_finished_task(connect: Connect, binding: TransportProtocol) -> None:
    client = await connect('echo', streaming=False)
    request = say('hello')
    task = await ask(client, request)
    assert task.id and task.context_id
    assert task.kind == 'task'
    assert task.status.state == TaskState.completed
    # The other transports of the SDK read no times.
    assert task.status.timestamp or binding != JSONRPC
    assert task.history[0].message_id == request.message_id
    assert task.history[0].role == Role.user
    assert plain(task.history[0].parts) == plain(request.parts)


async def test_every_kind_of_part_comes_back_as_it_was_sent(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    raw = base64.b64encode(bytes(range(256))).decode()
    parts = [
        Part(TextPart(text='Grüße, 世界 \u2028 "quoted"')),
        Part(DataPart(data={'number': 1.5, 'nested': [True, None, {'text': ''}], 'empty': {}})),
        Part(FilePart(file=FileWithBytes(bytes=raw, mime_type='application/octet-stream', name='all.bin'))),
        Part(FilePart(file=FileWithUri(uri='https://example.com/a%20b?c=d', mime_type='image/png', name='b.png'))),
        Part(TextPart(text='with metadata', metadata={'mine': {'n': 3}})),
    ]
    task = await ask(client, message(parts))
    (artifact,) = task.artifacts
    assert plain(artifact.parts) == plain(parts)


async def test_a_stored_task_reads_as_it_was_answered(connect: Connect) -> None:
    answered = await ask(await connect('echo', streaming=False), say('keep this'))
    assert await get(await connect('echo'), answered) == answered


async def test_history_is_as_long_as_asked(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    asked = await ask(client, say('may I?'))
    whole = (await ask(client, say('approve', asked))).history
    assert len(whole) >= 2
    # In this version a length of nought is no limit.
    for length, expected in [(None, whole), (0, whole), (1, whole[-1:]), (100, whole)]:
        stored = await client.get_task(TaskQueryParams(id=asked.id, history_length=length))
        assert stored.history == expected


async def test_a_send_that_does_not_wait_returns_before_the_end(connect: Connect, begin: Begin) -> None:
    watcher = await connect('slow-writer')
    task = await begin('slow-writer', 'sections=5 delay=100ms')
    assert task.status.state in (TaskState.submitted, TaskState.working)
    told = await listen(watch(watcher, task))
    assert_ends_once(told, TaskState.completed)


async def test_a_send_that_leaves_blocking_out_waits_over_json_rpc(
    connect: Connect, binding: TransportProtocol
) -> None:
    if binding != JSONRPC:
        pytest.skip('protobuf makes an absent choice a choice not to wait')
    client = await connect('slow-writer', streaming=False, polling=True)
    unset = MessageSendConfiguration(blocking=None)
    ((task, _),) = [e async for e in client.send_message(say('sections=2 delay=20ms'), configuration=unset)]
    assert task.status.state == TaskState.completed


async def test_a_context_goes_on_with_a_new_task(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    first = await ask(client, say('first'))
    request = say('second')
    request.context_id = first.context_id
    second = await ask(client, request)
    assert second.context_id == first.context_id
    assert second.id != first.id
