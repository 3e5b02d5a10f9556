"""A receiver of push notifications, with the standard library only: every SDK's interpreter can use it."""

import json
import threading
import time

from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any


# How long a delivery may take; no assertion depends on it.
LIMIT = 30


@dataclass(frozen=True)
class Delivery:
    """A request as it arrived."""

    method: str
    path: str
    # Names in lower case.
    headers: dict[str, str]
    body: bytes
    # When it arrived, on the clock `time.monotonic`.
    at: float

    @property
    def id(self) -> str:
        return self.headers['webhook-id']

    @property
    def number(self) -> int:
        """The number of the event in the log of the task."""
        return int(self.id.rpartition('-')[2])

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def state(self) -> str:
        """The state of the task, in every dialect, such as `completed` or `input-required`."""
        state = self.json.get('task', self.json)['status']['state']
        return state.removeprefix('TASK_STATE_').lower().replace('_', '-')


@dataclass(frozen=True)
class Answer:
    status: int
    body: str = ''
    # A header of the response.
    header: tuple[str, str] | None = None


ACCEPTED = Answer(204)

Decide = Callable[[Delivery], Answer]


class Receiver:
    """Listens until it is closed. `decide` makes the response to each delivery; it may wait."""

    def __init__(self, decide: Decide = lambda _: ACCEPTED, host: str = '127.0.0.1', port: int = 0) -> None:
        self.decide = decide
        self.arrived = threading.Condition()
        self.deliveries: list[Delivery] = []
        self.connections = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._answer(self)

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            # Without the search for a name of the address, which may take long.
            server_bind = TCPServer.server_bind

            def verify_request(self, *_: Any) -> bool:
                receiver.connections += 1
                return True

            def handle_error(self, *_: Any) -> None:
                """The sender has closed the connection of a response that came too late."""

        self.server = Server((host, port), Handler)
        self.port = self.server.server_address[1]
        self.origin = f'http://{host}:{self.port}'
        self.url = f'{self.origin}/hook'
        # The interval in which a close is noticed.
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get('content-length') or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        delivery = Delivery(handler.command, handler.path, headers, body, time.monotonic())
        with self.arrived:
            self.deliveries.append(delivery)
            self.arrived.notify_all()
        answer = self.decide(delivery)
        handler.send_response(answer.status)
        if answer.header:
            handler.send_header(*answer.header)
        handler.end_headers()
        handler.wfile.write(answer.body.encode())

    def wait(self, wanted: Callable[[list[Delivery]], bool]) -> list[Delivery]:
        """Waits until the deliveries are as wanted; all so far."""
        with self.arrived:
            came = self.arrived.wait_for(lambda: wanted(self.deliveries), LIMIT)
            assert came, [(each.path, each.headers, each.body) for each in self.deliveries]
            return list(self.deliveries)

    def wait_for_count(self, count: int) -> list[Delivery]:
        return self.wait(lambda deliveries: len(deliveries) >= count)

    def wait_for_state(self, state: str) -> Delivery:
        """Waits for the notification that a task has this state; the first one."""

        def found(deliveries: list[Delivery]) -> list[Delivery]:
            return [each for each in deliveries if each.method == 'POST' and each.state == state]

        return found(self.wait(lambda deliveries: bool(found(deliveries))))[0]

    def close(self) -> None:
        """Refuses connections from now on."""
        self.server.shutdown()
        self.server.server_close()


def answers(*statuses: int) -> Decide:
    """These statuses in turn, then success."""
    left = list(statuses)
    return lambda _: Answer(left.pop(0)) if left else ACCEPTED
