"""HTTP functions whose output is a stream: each piece reaches the client before the function sends the next one."""

import json
import threading

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from helpers import data, state


PIECES = 5


class Function:
    """Sends piece k + 1 when `received` says that the client has piece k."""

    def __init__(self) -> None:
        self.received = threading.Semaphore(0)
        function = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self) -> None:  # noqa: N802
                arguments = json.loads(self.rfile.read(int(self.headers['content-length'])))
                self.send_response(200)
                self.send_header('content-type', arguments['type'])
                self.send_header('transfer-encoding', 'chunked')
                self.end_headers()
                for number in range(PIECES):
                    piece = arguments['piece'].replace('#', str(number)).encode()
                    self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
                    self.wfile.flush()
                    assert function.received.acquire(timeout=20), f'the client has not received piece {number}'
                self.wfile.write(b'0\r\n\r\n')

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def function():
    function = Function()
    yield function
    function.server.shutdown()


@pytest.mark.parametrize(
    ('media_type', 'piece', 'part'),
    [
        ('text/event-stream', 'data: {"n":#}\n\n', {'data': {'n': '#'}}),
        ('application/x-ndjson', '{"n":#}\n', {'data': {'n': '#'}}),
        ('text/plain', 'piece # ', {'text': 'piece # '}),
    ],
)
def test_stream_is_passed_on_unbuffered(start, function, media_type, piece, part):
    server = start(f'[skills.count]\nhttp = {{ url = "{function.url}/count" }}\n')
    seen = []
    last = None
    for event in server.stream('count', data({'type': media_type, 'piece': piece})):
        if 'artifactUpdate' in event:
            seen.extend(event['artifactUpdate']['artifact']['parts'])
            function.received.release()
        elif 'statusUpdate' in event:
            last = event['statusUpdate']
    expected = [json.loads(json.dumps(part).replace('"#"', str(n)).replace('#', str(n))) for n in range(PIECES)]
    assert [{key: value for key, value in one.items() if key in ('data', 'text')} for one in seen] == expected
    assert state(last) == 'completed'
