"""Streaming sends: the task first, then every event, then the end."""

from a2a.types import GetTaskRequest, TaskState

from conftest import Connect
from helpers import assert_ends_once, fold, send_streaming, states, texts, user_message


async def test_stream_starts_with_the_task_and_ends_with_its_final_status(connect: Connect) -> None:
    client = await connect('echo')
    message = user_message('stream this')
    events = [event async for event in send_streaming(client, message)]

    first = events[0].task
    assert first.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
    assert [m.message_id for m in first.history] == [message.message_id]
    assert not first.artifacts
    assert [e.WhichOneof('payload') for e in events[1:]].count('artifact_update') == 1
    assert_ends_once(events, TaskState.TASK_STATE_COMPLETED)

    folded = fold(events)
    stored = await client.get_task(GetTaskRequest(id=first.id))
    assert folded.status == stored.status
    assert list(folded.artifacts) == list(stored.artifacts)
    assert list(texts(stored).values()) == ['stream this']


async def test_chunks_of_an_artifact_merge_to_the_stored_artifact(connect: Connect) -> None:
    client = await connect('slow-writer')
    events = [event async for event in send_streaming(client, user_message('sections=4 delay=20ms'))]

    chunks = [e.artifact_update for e in events if e.HasField('artifact_update')]
    assert len(chunks) >= 4
    assert len({chunk.artifact.artifact_id for chunk in chunks}) == 1
    assert [chunk.append for chunk in chunks] == [False] + [True] * (len(chunks) - 1)
    assert [chunk.last_chunk for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    progress = [
        e.status_update.status
        for e in events
        if e.HasField('status_update') and e.status_update.status.state == TaskState.TASK_STATE_WORKING
    ]
    assert any(status.HasField('message') for status in progress)
    assert_ends_once(events, TaskState.TASK_STATE_COMPLETED)

    folded = fold(events)
    stored = await client.get_task(GetTaskRequest(id=folded.id))
    assert folded.status == stored.status
    assert texts(folded) == texts(stored)
    assert all(texts(stored).values())


async def test_stream_ends_when_input_is_required(connect: Connect) -> None:
    client = await connect('approver')
    events = [event async for event in send_streaming(client, user_message('may I?'))]
    assert states(events)[-1] == TaskState.TASK_STATE_INPUT_REQUIRED
    assert fold(events).status.message.parts
