"""Resubscribing to tasks that another client started: the snapshot first, then all later events."""

import asyncio

from a2a.types import Task, TaskArtifactUpdateEvent, TaskState

from conftest import Connect, StartTask
from helpers import TERMINAL, StreamResult, assert_ends_once, cancel, collect, get, send, subscribe, texts, user_message


async def test_second_subscriber_misses_no_event(connect: Connect) -> None:
    sender, subscriber = await connect('slow-writer'), await connect('slow-writer')
    sent = []
    joining: asyncio.Task[StreamResult] | None = None
    async for task, update in sender.send_message(user_message('sections=10 delay=100ms')):
        sent.append(update)
        if joining is None and len([u for u in sent if isinstance(u, TaskArtifactUpdateEvent)]) == 2:
            joining = asyncio.create_task(collect(subscribe(subscriber, task)))
    assert joining is not None
    joined = await joining

    assert joined.first.status.state == TaskState.working
    assert any(texts(joined.first).values())
    assert joined.updates == sent[-len(joined.updates) :]
    assert_ends_once(joined, TaskState.completed)
    assert texts(joined.task) == texts(task) == texts(await get(subscriber, task))


async def test_work_continues_after_a_disconnect_and_can_be_resubscribed(connect: Connect) -> None:
    sender, subscriber = await connect('slow-writer'), await connect('slow-writer')
    stream = sender.send_message(user_message('sections=10 delay=100ms'))
    task, _ = await anext(stream)
    while not isinstance((await anext(stream))[1], TaskArtifactUpdateEvent):
        pass
    await stream.aclose()

    joined = await collect(subscribe(subscriber, task))
    assert_ends_once(joined, TaskState.completed)
    assert texts(joined.task) == texts(await get(sender, task))


async def test_subscriber_of_a_waiting_task_receives_the_next_turn(connect: Connect) -> None:
    sender = await connect('approver', streaming=False)
    waiting = await send(sender, user_message('may I?'))
    stream = subscribe(await connect('approver'), waiting)
    first, update = await anext(stream)
    assert update is None
    assert first.status.state == TaskState.input_required
    await send(sender, user_message('approve', waiting))
    rest = [update async for _, update in stream]
    assert rest[-1].final
    assert rest[-1].status.state == TaskState.completed


async def test_subscriber_receives_a_cancel_by_another_client(connect: Connect, start_task: StartTask) -> None:
    sender = await connect('echo')
    task = await start_task('echo', 'hold until cancelled')
    assert task.status.state not in TERMINAL
    stream = subscribe(await connect('echo'), task)
    await anext(stream)
    await cancel(sender, task)
    rest = [update async for _, update in stream]
    assert (rest[-1].status.state, rest[-1].final) == (TaskState.canceled, True)


async def test_two_subscribers_receive_the_same_events(connect: Connect, start_task: StartTask) -> None:
    subscribers = [await connect('slow-writer') for _ in range(2)]
    task = await start_task('slow-writer', 'sections=10 delay=100ms')
    one, other = await asyncio.gather(*(collect(subscribe(subscriber, task)) for subscriber in subscribers))
    shorter = min(len(one.updates), len(other.updates))
    assert shorter > 0
    assert one.updates[-shorter:] == other.updates[-shorter:]
    assert_ends_once(one, TaskState.completed)
    assert texts(one.task) == texts(other.task)


async def test_subscriber_of_a_finished_task_receives_its_final_status(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('done at once'))
    events = [event async for event in subscribe(await connect('echo'), task)]
    ((merged, _),) = events
    assert isinstance(merged, Task)
    assert merged.status == task.status


async def test_sender_receives_a_cancel_by_another_client(connect: Connect) -> None:
    sender = await connect('echo')
    stream = sender.send_message(user_message('hold this'))
    task, _ = await anext(stream)
    await cancel(await connect('echo'), task)
    rest = [update async for _, update in stream]
    assert (rest[-1].status.state, rest[-1].final) == (TaskState.canceled, True)
    assert TaskState.completed not in [u.status.state for u in rest]
