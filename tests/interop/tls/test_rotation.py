"""Certificates that are replaced under load: no call fails, and the new one is used."""

import http.client
import os
import ssl
import threading

from certificates import Authority, Pair
from conftest import Server, Start


ROTATIONS = 20
RELOADED = 'the TLS certificate was reloaded'


class Load:
    """Clients that call as fast as they can: on one connection, and on a new one for each call."""

    def __init__(self, server: Server, authority: Authority) -> None:
        self.server, self.stopped = server, threading.Event()
        self.context = ssl.create_default_context(cafile=authority.cert)
        self.calls, self.failures, self.certificates = [0, 0], [], set()
        self.threads = [threading.Thread(target=self._run, args=[kept]) for kept in (0, 1)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def _run(self, kept: int) -> None:
        connection = self._connect()
        while not self.stopped.is_set():
            try:
                if not kept:
                    connection.close()
                    connection = self._connect()
                self._call(connection)
                self.calls[kept] += 1
            except Exception as error:  # noqa: BLE001
                self.failures.append(repr(error))
                connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection('localhost', self.server.port, context=self.context, timeout=10)

    def _call(self, connection: http.client.HTTPSConnection) -> None:
        connection.request('POST', '/a2a/open', 'hello', {'Content-Type': 'text/plain'})
        self.certificates.add(connection.sock.getpeercert()['serialNumber'])
        response = connection.getresponse()
        body = response.read()
        assert (response.status, body) == (200, b'hello'), (response.status, body)


def replace(pair: Pair, new: Pair, in_place: bool) -> None:
    for old_file, new_file in [(pair.cert, new.cert), (pair.key, new.key)]:
        if in_place:
            old_file.write_bytes(new_file.read_bytes())
        else:
            os.replace(new_file, old_file)


def test_rotation_under_load(start: Start, authority: Authority) -> None:
    pair = authority.sign('server')
    server = start(pair)
    load = Load(server, authority)
    for rotation in range(ROTATIONS):
        replace(pair, authority.sign('next'), in_place=rotation % 2 == 0)
        server.wait_for_log(RELOADED, rotation + 1)
    pair.key.write_text('nothing')
    server.wait_for_log('the TLS files were not reloaded')
    load.stop()
    assert not load.failures, load.failures[:5]
    assert min(load.calls) > ROTATIONS, load.calls
    assert len(load.certificates) >= ROTATIONS / 2
    print(f'{sum(load.calls)} calls, {len(load.certificates)} certificates')
