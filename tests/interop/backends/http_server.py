"""The reference MCP server over streamable HTTP, on a free port."""

import os
import socket
import subprocess
import time

from pathlib import Path


def free_port() -> int:
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


class HttpServer:
    def __init__(self, command: list[str], directory: Path, port: int = 0) -> None:
        self.port = port or free_port()
        self.process = subprocess.Popen(
            [*command, 'streamableHttp'],
            cwd=directory,
            env={**os.environ, 'PORT': str(self.port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> str:
        for _ in range(400):
            try:
                socket.create_connection(('127.0.0.1', self.port)).close()
            except OSError:
                assert self.process.poll() is None, 'the MCP server ended'
                time.sleep(0.05)
            else:
                return f'http://127.0.0.1:{self.port}'
        raise AssertionError('the MCP server did not start')

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
