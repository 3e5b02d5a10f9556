"""Streaming sends: the task first, then every event, then the end."""

from a2a.types import TaskState, TaskStatusUpdateEvent

from conftest import Connect
from helpers import assert_ends_once, chunks, collect, get, states, texts, user_message


async def test_stream_starts_with_the_task_and_ends_with_its_final_status(connect: Connect) -> None:
    client = await connect('echo')
    request = user_message('stream this')
    result = await collect(client.send_message(request))
    assert result.first.status.state in (TaskState.submitted, TaskState.working)
    assert [m.message_id for m in result.first.history] == [request.message_id]
    assert not result.first.artifacts
    assert len(chunks(result)) == 1
    assert_ends_once(result, TaskState.completed)

    stored = await get(client, result.first)
    assert result.task.status == stored.status
    assert result.task.artifacts == stored.artifacts
    assert list(texts(stored).values()) == ['stream this']


async def test_chunks_of_an_artifact_merge_to_the_stored_artifact(connect: Connect) -> None:
    client = await connect('slow-writer')
    result = await collect(client.send_message(user_message('sections=4 delay=20ms')))
    written = chunks(result)
    assert len(written) >= 4
    assert len({chunk.artifact.artifact_id for chunk in written}) == 1
    assert [chunk.append for chunk in written] == [False] + [True] * (len(written) - 1)
    assert [chunk.last_chunk for chunk in written] == [False] * (len(written) - 1) + [True]
    progress = [u.status for u in result.updates if isinstance(u, TaskStatusUpdateEvent) and not u.final]
    assert any(status.message and status.message.parts for status in progress)
    assert_ends_once(result, TaskState.completed)

    stored = await get(client, result.first)
    assert result.task.status == stored.status
    assert texts(result.task) == texts(stored)
    assert all(texts(stored).values())


async def test_stream_ends_when_input_is_required(connect: Connect) -> None:
    client = await connect('approver')
    result = await collect(client.send_message(user_message('may I?')))
    assert states(result)[-1] == TaskState.input_required
    assert_ends_once(result, TaskState.input_required)
    assert result.task.status.message.parts
