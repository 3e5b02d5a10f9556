"""Servers of the program under test, each with its own store, and receivers of their notifications."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calls import PushServer, config
from receiver import Decide, Receiver


Start = Callable[..., PushServer]
Receive = Callable[..., Receiver]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server, again with the same store in the same test; all are killed at its end."""
    servers: list[PushServer] = []

    def start_one(content: str | None = None) -> PushServer:
        servers.append(PushServer(content or config(), tmp_path, {}))
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


@pytest.fixture
def receive() -> Iterator[Receive]:
    """Starts a receiver; all are closed at the end of the test."""
    receivers: list[Receiver] = []

    def start_one(*arguments: Decide, **options: str | int) -> Receiver:
        receivers.append(Receiver(*arguments, **options))
        return receivers[-1]

    yield start_one
    for receiver in receivers:
        receiver.close()


@pytest.fixture
def server(start: Start) -> PushServer:
    return start()


@pytest.fixture
def receiver(receive: Receive) -> Receiver:
    return receive()
