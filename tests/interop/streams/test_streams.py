"""Streams without events for a while: the SDK must not take a keep-alive for an event."""

import asyncio

from conftest import SDK, Connect
from server import Server
from wire import Stream


# Number of keep-alives that arrive while a stream has no events.
QUIET = 4


async def test_quiet_stream_is_held_over_keep_alives(connect: Connect, binding: str) -> None:
    sender, other = await connect(binding), await connect(binding)
    stream = Stream(sender.wire, sender.stream('hold the stream'))
    await stream.keep_alives(QUIET)
    await other.cancel(await stream.task())
    assert await stream.states() == ['submitted', 'working', 'canceled']


async def test_quiet_subscription_is_held_over_keep_alives(connect: Connect, binding: str) -> None:
    subscriber, other = await connect(binding), await connect(binding)
    task = await start_task(other)
    stream = Stream(subscriber.wire, subscriber.subscribe(task))
    await stream.keep_alives(QUIET)
    await other.cancel(task)
    first, *updates = await stream.states()
    assert first in ('submitted', 'working')
    assert [state for state in updates if state != 'working'] == ['canceled']


async def test_send_without_blocking_returns_a_live_task(connect: Connect, binding: str) -> None:
    client = await connect(binding)
    task, state = await client.send_without_blocking('hold the task')
    assert state in ('submitted', 'working')
    assert (await client.get(task)).state in ('submitted', 'working')
    assert await client.cancel(task) == (task, 'canceled')
    assert await client.get(task) == (task, 'canceled')


async def test_streams_end_in_a_drain_and_are_resumed_after_it(connect: Connect, server: Server) -> None:
    """All bindings are tested in one drain, because a drain takes long."""
    clients = {}
    for binding in SDK.BINDINGS:
        sender, subscriber = await connect(binding, server.url), await connect(binding, server.url)
        sent = Stream(sender.wire, sender.stream('hold through the drain'))
        task = await sent.task()
        joined = Stream(subscriber.wire, subscriber.subscribe(task))
        await joined.task()
        clients[task] = sender, subscriber, sent, joined

    # The first signal starts a drain, which waits for running tasks; the tasks of this test never finish. The second
    # signal ends the drain. A signal that follows too soon is ignored as a duplicate.
    server.terminate()
    streams = [stream for _, _, *streams in clients.values() for stream in streams]
    await asyncio.gather(*(stream.keep_alives(QUIET) for stream in streams))
    server.terminate()
    for sender, subscriber, sent, joined in clients.values():
        assert await sent.states() == ['submitted', 'working']
        assert (await joined.states())[-1] == 'working'
        # The drain ended the streams, not a lost connection.
        assert (sender.wire.lines(b'retry:'), subscriber.wire.lines(b'retry:')) == (1, 1)
    assert await server.exit_status() == 0

    await server.start()

    async def resume(task: str, sender, subscriber) -> None:
        resumed = Stream(subscriber.wire, subscriber.subscribe(task))
        assert await resumed.task() == task
        await resumed.keep_alives(QUIET)
        assert await sender.cancel(task) == (task, 'canceled')
        assert (await resumed.states())[-1] == 'canceled'

    await asyncio.gather(*(resume(task, *pair) for task, (*pair, _, _) in clients.items()))


async def start_task(client) -> str:
    """Creates a task and closes its stream."""
    stream = client.stream('hold the task')
    task = (await anext(stream)).task
    await stream.aclose()
    return task
