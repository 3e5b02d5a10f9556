"""Servers of the program under test, each with its own configuration and store, and what issues their credentials."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from calls import Agents
from provider import Provider
from tokens import Jose, Library, PyJwt


Start = Callable[..., Agents]
StartProvider = Callable[..., Provider]

# The secret of HS256 tokens in tests that configure one.
SECRET = 'a shared secret that is long enough for every algorithm with a secret'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker('late') is not None)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server; all are stopped at the end of the test."""
    servers: list[Agents] = []

    def start_one(config: str, name: str = 'server') -> Agents:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        servers.append(Agents(config, directory, {'A2A_SECRET': SECRET, 'ACME_SECRET': SECRET[::-1]}))
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


@pytest.fixture
def start_provider(tmp_path: Path) -> Iterator[StartProvider]:
    """Starts a process of the OpenID provider; all are stopped at the end of the test."""
    providers: list[Provider] = []

    def start_one(keys: str = 'keys', **options: Any) -> Provider:
        providers.append(Provider(tmp_path / f'{keys}.json', **options))
        return providers[-1]

    yield start_one
    for provider in providers:
        provider.stop()


@pytest.fixture(params=[PyJwt(), Jose()], ids=['PyJWT', 'jose'])
def library(request: pytest.FixtureRequest) -> Library:
    return request.param


@pytest.fixture
def jose() -> Jose:
    return Jose()


@pytest.fixture
def anyio_backend() -> str:
    return 'asyncio'
