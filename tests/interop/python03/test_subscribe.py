"""Subscribing again to tasks somebody else started: the snapshot first, then everything that follows."""

import asyncio

from a2a.types import Task, TaskArtifactUpdateEvent, TaskState

from conftest import Begin, Connect
from talk import TERMINAL, Told, ask, assert_ends_once, cancel, get, listen, say, texts, watch


async def test_a_second_client_joins_a_running_stream_and_misses_nothing(connect: Connect) -> None:
    sender, joiner = await connect('slow-writer'), await connect('slow-writer')
    sent = []
    joining: asyncio.Task[Told] | None = None
    async for task, update in sender.send_message(say('sections=10 delay=100ms')):
        sent.append(update)
        if joining is None and len([u for u in sent if isinstance(u, TaskArtifactUpdateEvent)]) == 2:
            joining = asyncio.create_task(listen(watch(joiner, task)))
    assert joining is not None
    joined = await joining

    assert joined.first.status.state == TaskState.working
    assert any(texts(joined.first).values())
    assert joined.updates == sent[-len(joined.updates) :]
    assert_ends_once(joined, TaskState.completed)
    assert texts(joined.task) == texts(task) == texts(await get(joiner, task))


async def test_work_goes_on_when_its_client_leaves_and_can_be_joined_again(connect: Connect) -> None:
    leaver, joiner = await connect('slow-writer'), await connect('slow-writer')
    stream = leaver.send_message(say('sections=10 delay=100ms'))
    task, _ = await anext(stream)
    while not isinstance((await anext(stream))[1], TaskArtifactUpdateEvent):
        pass
    await stream.aclose()

    joined = await listen(watch(joiner, task))
    assert_ends_once(joined, TaskState.completed)
    assert texts(joined.task) == texts(await get(leaver, task))


async def test_a_subscriber_of_a_waiting_task_sees_the_next_turn(connect: Connect) -> None:
    asker = await connect('approver', streaming=False)
    asked = await ask(asker, say('may I?'))
    stream = watch(await connect('approver'), asked)
    first, update = await anext(stream)
    assert update is None
    assert first.status.state == TaskState.input_required
    await ask(asker, say('approve', asked))
    rest = [update async for _, update in stream]
    assert rest[-1].final
    assert rest[-1].status.state == TaskState.completed


async def test_a_subscriber_sees_the_cancel_of_another(connect: Connect, begin: Begin) -> None:
    holder = await connect('echo')
    task = await begin('echo', 'hold until cancelled')
    assert task.status.state not in TERMINAL
    stream = watch(await connect('echo'), task)
    await anext(stream)
    await cancel(holder, task)
    rest = [update async for _, update in stream]
    assert (rest[-1].status.state, rest[-1].final) == (TaskState.canceled, True)


async def test_two_subscribers_see_the_same_events(connect: Connect, begin: Begin) -> None:
    watchers = [await connect('slow-writer') for _ in range(2)]
    task = await begin('slow-writer', 'sections=10 delay=100ms')
    one, other = await asyncio.gather(*(listen(watch(watcher, task)) for watcher in watchers))
    shorter = min(len(one.updates), len(other.updates))
    assert shorter > 0
    assert one.updates[-shorter:] == other.updates[-shorter:]
    assert_ends_once(one, TaskState.completed)
    assert texts(one.task) == texts(other.task)


async def test_a_subscriber_of_a_finished_task_learns_its_outcome(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('done at once'))
    events = [event async for event in watch(await connect('echo'), task)]
    ((merged, _),) = events
    assert isinstance(merged, Task)
    assert merged.status == task.status


async def test_a_cancelled_stream_tells_its_sender(connect: Connect) -> None:
    sender = await connect('echo')
    stream = sender.send_message(say('hold this'))
    task, _ = await anext(stream)
    await cancel(await connect('echo'), task)
    rest = [update async for _, update in stream]
    assert (rest[-1].status.state, rest[-1].final) == (TaskState.canceled, True)
    assert TaskState.completed not in [u.status.state for u in rest]
