"""A server of the program under test with one plain address and one with TLS."""

import json
import os
import subprocess
import time

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certificates import Authority, Pair


PROGRAM = os.environ['A2AD_PROGRAM']
# How long a server may take to start or to log something.
LIMIT = 30

CONFIG = """
[server]
listen = ["127.0.0.1:0", { address = "127.0.0.1:0", tls = { cert = "CERT", key = "KEY", client_ca = "CLIENT_CA" } }]
default_agent = "open"
[skills]
echo = { builtin = "echo" }
[agents]
open = { skills = ["echo"], auth = ["anonymous"] }
closed = { skills = ["echo"], auth = ["mtls"] }
"""


class Server:
    def __init__(self, directory: Path, pair: Pair, client_ca: Path) -> None:
        config = CONFIG.replace('CERT', str(pair.cert)).replace('KEY', str(pair.key))
        (directory / 'a2ad.toml').write_text(config.replace('CLIENT_CA', str(client_ca)))
        self.directory = directory
        self.log_file = directory / 'log'
        environment = {name: value for name, value in os.environ.items() if not name.startswith('A2AD_')}
        with self.log_file.open('w') as log:
            self.process = subprocess.Popen([PROGRAM], cwd=directory, env=environment, stderr=log)
        self.wait_for_log('a2ad serves')
        line = next(line for line in self.log().splitlines() if 'a2ad serves' in line)
        self.port = int(json.loads(line)['other_urls'].rsplit(':', 1)[1])
        self.url = f'https://localhost:{self.port}'

    def log(self) -> str:
        return self.log_file.read_text()

    def wait_for_log(self, text: str, times: int = 1) -> None:
        end = time.monotonic() + LIMIT
        while self.log().count(text) < times:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(LIMIT) == 0, self.log()


Start = Callable[..., Server]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, 'authority')


@pytest.fixture
def start(tmp_path: Path, authority: Authority) -> Iterator[Start]:
    """Starts a server; all are stopped at the end of the test."""
    servers: list[Server] = []

    def start_one(pair: Pair | None = None) -> Server:
        servers.append(Server(tmp_path, pair or authority.sign('server'), authority.cert))
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()
