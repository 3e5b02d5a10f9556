"""Subscribing to tasks somebody else started: the snapshot first, then everything that follows."""

import asyncio

from collections.abc import Awaitable, Callable

from a2a.client import Client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)

from conftest import Connect
from talk import TERMINAL, ask, assert_ends_once, fold, say, send, states, texts


async def watch(client: Client, task: Task, then: Callable[[], Awaitable[object]]) -> list[StreamResponse]:
    """Follows a task to the end of the stream, doing something once the snapshot has arrived."""
    events = []
    async for event in client.subscribe(SubscribeToTaskRequest(id=task.id)):
        events.append(event)
        if len(events) == 1:
            await then()
    return events


async def nothing() -> None:
    pass


async def test_a_second_client_joins_a_running_stream_and_misses_nothing(connect: Connect) -> None:
    sender, joiner = await connect('slow-writer'), await connect('slow-writer')
    sent: list[StreamResponse] = []
    joining: asyncio.Task[list[StreamResponse]] | None = None
    async for event in send(sender, say('sections=10 delay=100ms')):
        sent.append(event)
        if joining is None and len([e for e in sent if e.HasField('artifact_update')]) == 2:
            joining = asyncio.create_task(watch(joiner, sent[0].task, nothing))
    assert joining is not None
    joined = await joining

    snapshot, live = joined[0].task, joined[1:]
    assert snapshot.status.state == TaskState.TASK_STATE_WORKING
    assert any(texts(snapshot).values())
    assert live == sent[-len(live) :]
    assert_ends_once(joined, TaskState.TASK_STATE_COMPLETED)
    stored = await joiner.get_task(GetTaskRequest(id=snapshot.id))
    assert texts(fold(joined)) == texts(fold(sent)) == texts(stored)


async def test_work_goes_on_when_its_client_leaves_and_can_be_joined_again(connect: Connect) -> None:
    leaver, joiner = await connect('slow-writer'), await connect('slow-writer')
    stream = send(leaver, say('sections=10 delay=100ms'))
    task = (await anext(stream)).task
    while not (await anext(stream)).HasField('artifact_update'):
        pass
    await stream.aclose()

    joined = await watch(joiner, task, nothing)
    assert_ends_once(joined, TaskState.TASK_STATE_COMPLETED)
    stored = await leaver.get_task(GetTaskRequest(id=task.id))
    assert texts(fold(joined)) == texts(stored)


async def test_a_subscriber_of_a_waiting_task_sees_the_next_turn(connect: Connect) -> None:
    asker = await connect('approver', streaming=False)
    task = await ask(asker, say('may I?'))
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED

    watcher = await connect('approver')
    events = await watch(watcher, task, lambda: ask(asker, say('approve', task)))
    assert events[0].task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert_ends_once(events, TaskState.TASK_STATE_COMPLETED)
    assert TaskState.TASK_STATE_INPUT_REQUIRED not in states(events)
    assert fold(events).status == (await asker.get_task(GetTaskRequest(id=task.id))).status


async def test_a_subscriber_sees_the_cancel_of_another(connect: Connect) -> None:
    holder = await connect('echo', streaming=False, polling=True)
    task = await ask(holder, say('hold until cancelled'))
    assert task.status.state not in TERMINAL

    watcher = await connect('echo')
    events = await watch(watcher, task, lambda: holder.cancel_task(CancelTaskRequest(id=task.id)))
    assert_ends_once(events, TaskState.TASK_STATE_CANCELED)


async def test_all_subscribers_see_the_same_events(connect: Connect) -> None:
    sender = await connect('slow-writer', streaming=False, polling=True)
    watchers = [await connect('slow-writer') for _ in range(3)]
    task = await ask(sender, say('sections=10 delay=100ms'))
    streams = await asyncio.gather(*(watch(watcher, task, nothing) for watcher in watchers))
    shortest = min(len(events) for events in streams) - 1
    assert shortest > 0
    for events in streams:
        assert_ends_once(events, TaskState.TASK_STATE_COMPLETED)
        assert events[-shortest:] == streams[0][-shortest:]
        assert texts(fold(events)) == texts(fold(streams[0]))
