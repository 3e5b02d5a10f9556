"""An MCP server over HTTP whose answers a test decides, because no real server answers like this."""

import json
import threading

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


Json = dict[str, Any]

TOOL = {
    'name': 'echo',
    'description': 'Echoes a text',
    'inputSchema': {'type': 'object', 'properties': {'text': {'type': 'string'}}, 'required': ['text']},
}


def content(text: str) -> Json:
    return {'content': [{'type': 'text', 'text': text}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: 'FakeServer'

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        refused = self.server.refuse and self.server.refuse(message)
        if refused:
            self.respond(*refused)
        elif message.get('method') == 'initialize':
            result = {
                'protocolVersion': '2025-11-25',
                'capabilities': {'tools': {}},
                'serverInfo': {'name': 'fake', 'version': '1'},
            }
            self.respond(200, {'jsonrpc': '2.0', 'id': message['id'], 'result': result})
        elif message.get('method') == 'tools/list':
            self.respond(200, {'jsonrpc': '2.0', 'id': message['id'], 'result': {'tools': [TOOL]}})
        elif message.get('method') == 'tools/call':
            self.stream(self.server.answer(message))
        elif 'id' in message and 'method' in message:
            self.respond(400, {'jsonrpc': '2.0', 'id': None, 'error': {'code': -32601, 'message': 'unknown'}})
        else:
            self.respond(202, None)

    def do_GET(self) -> None:
        self.respond(405, None)

    def do_DELETE(self) -> None:
        self.respond(200, None)

    def respond(self, status: int, body: Json | None, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode() if body else b''
        self.send_response(status)
        for name, value in {'Content-Type': 'application/json', **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def stream(self, messages: list[Json]) -> None:
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Connection', 'close')
        self.end_headers()
        for message in messages:
            self.wfile.write(b'data: ' + json.dumps(message).encode() + b'\n\n')
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class FakeServer(ThreadingHTTPServer):
    """`answer` returns the messages on the stream of a call; `refuse` an error instead of any response."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(('127.0.0.1', 0), Handler)
        self.answer: Callable[[Json], list[Json]] = lambda call: [self.result(call)]
        self.refuse: Callable[[Json], tuple[Any, ...] | None] | None = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self.server_address[1]}/mcp'

    @staticmethod
    def result(call: Json, of: Json | None = None) -> Json:
        """The result of a call, under the id of the same or another one."""
        text = call['params']['arguments']['text']
        return {'jsonrpc': '2.0', 'id': (of or call)['id'], 'result': content(f'echo {text}')}
