"""Streams of a send: one task first, then every event, then the end."""

from a2a.types import TaskState, TaskStatusUpdateEvent

from conftest import Connect
from talk import assert_ends_once, chunks, get, listen, say, states, texts


async def test_a_stream_starts_with_the_task_and_tells_it_to_its_end(connect: Connect) -> None:
    client = await connect('echo')
    request = say('stream this')
    told = await listen(client.send_message(request))
    assert told.first.status.state in (TaskState.submitted, TaskState.working)
    assert [m.message_id for m in told.first.history] == [request.message_id]
    assert not told.first.artifacts
    assert len(chunks(told)) == 1
    assert_ends_once(told, TaskState.completed)

    stored = await get(client, told.first)
    assert told.task.status == stored.status
    assert told.task.artifacts == stored.artifacts
    assert list(texts(stored).values()) == ['stream this']


async def test_chunks_of_an_artifact_merge_to_what_is_stored(connect: Connect) -> None:
    client = await connect('slow-writer')
    told = await listen(client.send_message(say('sections=4 delay=20ms')))
    written = chunks(told)
    assert len(written) >= 4
    assert len({chunk.artifact.artifact_id for chunk in written}) == 1
    assert [chunk.append for chunk in written] == [False] + [True] * (len(written) - 1)
    assert [chunk.last_chunk for chunk in written] == [False] * (len(written) - 1) + [True]
    progress = [u.status for u in told.updates if isinstance(u, TaskStatusUpdateEvent) and not u.final]
    assert any(status.message and status.message.parts for status in progress)
    assert_ends_once(told, TaskState.completed)

    stored = await get(client, told.first)
    assert told.task.status == stored.status
    assert texts(told.task) == texts(stored)
    assert all(texts(stored).values())


async def test_a_stream_ends_when_the_agent_asks(connect: Connect) -> None:
    client = await connect('approver')
    told = await listen(client.send_message(say('may I?')))
    assert states(told)[-1] == TaskState.input_required
    assert_ends_once(told, TaskState.input_required)
    assert told.task.status.message.parts
