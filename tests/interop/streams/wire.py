"""Event streams as bytes between the server and the SDK, and as the events that the SDK returns."""

import asyncio

from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx


# Timeout after which an operation counts as hung; no assertion depends on it.
LIMIT_SECONDS = 30


class Event(NamedTuple):
    """The id of an event's task, and the state in lower case."""

    task: str
    state: str


class Wire(httpx.AsyncHTTPTransport):
    """A transport that records the bytes of event streams. It ignores proxies: the server is on this machine."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)
        self.received = b''
        self.arrived = asyncio.Condition()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if response.headers.get('content-type', '').startswith('text/event-stream'):
            response.stream = Recorded(response.stream, self)
        return response

    async def record(self, chunk: bytes) -> None:
        async with self.arrived:
            self.received += chunk
            self.arrived.notify_all()

    def lines(self, start: bytes) -> int:
        return sum(line.startswith(start) for line in self.received.splitlines())

    async def keep_alives(self, more: int) -> None:
        """Returns once this many more comments have arrived."""
        wanted = self.lines(b':') + more
        async with self.arrived:
            await self.arrived.wait_for(lambda: self.lines(b':') >= wanted)


class Recorded(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, wire: Wire) -> None:
        self.stream = stream
        self.wire = wire

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.stream:
            await self.wire.record(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self.stream.aclose()


class Stream:
    """A stream of the SDK that is read in the background."""

    def __init__(self, wire: Wire, events: AsyncIterator[Event]) -> None:
        self.wire = wire
        self.events: list[Event] = []
        self.started = asyncio.Event()
        self.reading = asyncio.create_task(self._read(events))

    async def _read(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            self.events.append(event)
            self.started.set()

    async def task(self) -> str:
        """The id of the task, once the first event has arrived."""
        await self._while_open(self.started.wait())
        return self.events[0].task

    async def keep_alives(self, more: int) -> None:
        """Returns once this many more comments have arrived; fails if the SDK closes the stream before."""
        await self._while_open(self.wire.keep_alives(more))

    async def states(self) -> list[str]:
        """The states in order, once the stream has ended; all belong to one task."""
        await asyncio.wait_for(self.reading, LIMIT_SECONDS)
        assert {event.task for event in self.events} == {self.events[0].task}
        return [event.state for event in self.events]

    async def _while_open(self, waiting) -> None:
        waiting = asyncio.ensure_future(waiting)
        try:
            done, _ = await asyncio.wait(
                {waiting, self.reading}, timeout=LIMIT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if self.reading in done:
                await self.reading
                raise AssertionError(f'the stream ended early, after {self.wire.received!r}')
            assert waiting in done, f'timed out after {LIMIT_SECONDS} s, received {self.wire.received!r}'
        finally:
            waiting.cancel()
