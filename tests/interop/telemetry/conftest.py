"""Servers of the program under test, each with its own configuration and store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers import Server


Start = Callable[[str], Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server; all are stopped at the end of the test."""
    servers: list[Server] = []

    def start_one(config: str) -> Server:
        directory = tmp_path / f'server{len(servers)}'
        directory.mkdir()
        servers.append(Server(config, directory, {}))
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()
