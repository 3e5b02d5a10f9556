"""Subscribing to tasks that another client started: the snapshot first, then all later events."""

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
from helpers import TERMINAL, assert_ends_once, fold, send, send_streaming, states, texts, user_message


async def subscribe(client: Client, task: Task, then: Callable[[], Awaitable[object]]) -> list[StreamResponse]:
    """Reads the events of a task to the end of the stream; calls `then` once the snapshot has arrived."""
    events = []
    async for event in client.subscribe(SubscribeToTaskRequest(id=task.id)):
        events.append(event)
        if len(events) == 1:
            await then()
    return events


async def do_nothing() -> None:
    pass


async def test_second_subscriber_misses_no_event(connect: Connect) -> None:
    sender, subscriber = await connect('slow-writer'), await connect('slow-writer')
    sent: list[StreamResponse] = []
    joining: asyncio.Task[list[StreamResponse]] | None = None
    async for event in send_streaming(sender, user_message('sections=10 delay=100ms')):
        sent.append(event)
        if joining is None and len([e for e in sent if e.HasField('artifact_update')]) == 2:
            joining = asyncio.create_task(subscribe(subscriber, sent[0].task, do_nothing))
    assert joining is not None
    joined = await joining

    snapshot, live = joined[0].task, joined[1:]
    assert snapshot.status.state == TaskState.TASK_STATE_WORKING
    assert any(texts(snapshot).values())
    assert live == sent[-len(live) :]
    assert_ends_once(joined, TaskState.TASK_STATE_COMPLETED)
    stored = await subscriber.get_task(GetTaskRequest(id=snapshot.id))
    assert texts(fold(joined)) == texts(fold(sent)) == texts(stored)


async def test_work_continues_after_a_disconnect_and_can_be_resubscribed(connect: Connect) -> None:
    sender, subscriber = await connect('slow-writer'), await connect('slow-writer')
    stream = send_streaming(sender, user_message('sections=10 delay=100ms'))
    task = (await anext(stream)).task
    while not (await anext(stream)).HasField('artifact_update'):
        pass
    await stream.aclose()

    joined = await subscribe(subscriber, task, do_nothing)
    assert_ends_once(joined, TaskState.TASK_STATE_COMPLETED)
    stored = await sender.get_task(GetTaskRequest(id=task.id))
    assert texts(fold(joined)) == texts(stored)


async def test_subscriber_of_a_waiting_task_receives_the_next_turn(connect: Connect) -> None:
    sender = await connect('approver', streaming=False)
    task = await send(sender, user_message('may I?'))
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED

    subscriber = await connect('approver')
    events = await subscribe(subscriber, task, lambda: send(sender, user_message('approve', task)))
    assert events[0].task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert_ends_once(events, TaskState.TASK_STATE_COMPLETED)
    assert TaskState.TASK_STATE_INPUT_REQUIRED not in states(events)
    assert fold(events).status == (await sender.get_task(GetTaskRequest(id=task.id))).status


async def test_subscriber_receives_a_cancel_by_another_client(connect: Connect) -> None:
    sender = await connect('echo', streaming=False, polling=True)
    task = await send(sender, user_message('hold until cancelled'))
    assert task.status.state not in TERMINAL

    subscriber = await connect('echo')
    events = await subscribe(subscriber, task, lambda: sender.cancel_task(CancelTaskRequest(id=task.id)))
    assert_ends_once(events, TaskState.TASK_STATE_CANCELED)


async def test_all_subscribers_receive_the_same_events(connect: Connect) -> None:
    sender = await connect('slow-writer', streaming=False, polling=True)
    subscribers = [await connect('slow-writer') for _ in range(3)]
    task = await send(sender, user_message('sections=10 delay=100ms'))
    streams = await asyncio.gather(*(subscribe(subscriber, task, do_nothing) for subscriber in subscribers))
    shortest = min(len(events) for events in streams) - 1
    assert shortest > 0
    for events in streams:
        assert_ends_once(events, TaskState.TASK_STATE_COMPLETED)
        assert events[-shortest:] == streams[0][-shortest:]
        assert texts(fold(events)) == texts(fold(streams[0]))
