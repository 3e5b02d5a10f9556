"""Servers of the program under test, each with its own configuration, store and backends.

`A2AD_PROGRAM` is the program, `PACKAGES` the directory of the npm packages, `NODE` Node.js. The MCP servers are those
of npm and PyPI; the interpreter that runs the tests has the Python ones.
"""

import os
import shutil
import sys

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers import Server


PACKAGES = Path(os.environ['PACKAGES'])
NODE = os.environ.get('NODE', 'node')
PYTHON = Path(sys.executable).parent


@pytest.fixture
def everything() -> list[str]:
    """The reference server of the MCP project, on standard input and output."""
    return [NODE, str(PACKAGES / 'node_modules/.bin/mcp-server-everything')]


@pytest.fixture
def filesystem() -> list[str]:
    return [NODE, str(PACKAGES / 'node_modules/.bin/mcp-server-filesystem')]


@pytest.fixture
def time_server() -> str:
    return str(PYTHON / 'mcp-server-time')


@pytest.fixture
def git_server() -> str:
    return str(PYTHON / 'mcp-server-git')


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts a server with a configuration; all are stopped at the end of the test."""
    servers: list[Server] = []

    def start_one(config: str, directory: Path = tmp_path, env: dict[str, str] | None = None) -> Server:
        server = Server(config, directory, env or {})
        servers.append(server)
        return server

    yield start_one
    for server in servers:
        server.kill()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit."""
    if shutil.which('git') is None:
        pytest.fail('git is needed')
    path = tmp_path / 'repository'
    path.mkdir()
    (path / 'a.txt').write_text('a\n')
    identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.com']
    for arguments in (['init', '-q'], ['add', '.'], [*identity, 'commit', '-qm', 'first']):
        if os.spawnlp(os.P_WAIT, 'git', 'git', '-C', str(path), *arguments):
            pytest.fail(f'git {arguments} failed')
    return path
