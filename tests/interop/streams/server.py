"""The program under test as a process that can be stopped and started again on the same store and port."""

import asyncio
import os
import signal
import socket

from pathlib import Path

import httpx


# Timeout after which a start or a stop counts as hung; no assertion depends on it.
LIMIT_SECONDS = 30


class Server:
    def __init__(self, program: str, config: str, folder: Path) -> None:
        self.address = f'127.0.0.1:{free_port()}'
        self.url = f'http://{self.address}'
        self.log = folder / 'a2ad.log'
        store = str(folder / 'a2ad.db')
        self.command = [program, 'serve', '--listen', self.address, '--store', store, '--config', config]
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Returns once the server is ready."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith('A2AD_')}
        with self.log.open('ab') as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.command, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        await asyncio.wait_for(self._ready(), LIMIT_SECONDS)

    async def _ready(self) -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            while True:
                assert self.process.returncode is None, f'the server did not start:\n{self.log.read_text()}'
                try:
                    if (await http.get(f'{self.url}/readyz')).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.02)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def exit_status(self) -> int:
        return await asyncio.wait_for(self.process.wait(), LIMIT_SECONDS)

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
