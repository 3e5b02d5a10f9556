"""A public OpenAPI document of more than a thousand operations, against a server that records requests."""

import json
import os
import threading

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers import data, state


DOCUMENT = Path(os.environ['PACKAGES']) / 'node_modules/@octokit/openapi/generated/api.github.com.json'


@pytest.fixture
def recorder():
    requests: list[tuple[str, str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get('content-length') or 0)
            requests.append((self.command, self.path, dict(self.headers.items()), self.rfile.read(length)))
            body = b'{"id": 1}'
            self.send_response(200)
            self.send_header('content-type', 'application/json')
            self.send_header('content-length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}', requests
    server.shutdown()


def test_operations_of_a_large_document(start, recorder):
    url, requests = recorder
    server = start(
        f'[openapi.github]\nfile = {json.dumps(str(DOCUMENT))}\nbase_url = "{url}"\n'
        'headers_env = { authorization = "TOKEN" }\n',
        env={'TOKEN': 'Bearer t0ken'},
    )
    skills = {skill['id']: skill for skill in server.get('/.well-known/agent-card.json')['skills']}
    assert len(skills) > 500
    (get_repository,) = [skill for skill in skills if skill.replace('_', '/') == 'repos/get']
    # The document's output schema describes a repository; the recorder's answer is not one.
    answer = server.send(get_repository, data({'owner': 'a/../b', 'repo': 'c d'}))
    method, path, headers, _ = requests[-1]
    assert (method, path) == ('GET', '/repos/a%2F..%2Fb/c%20d')
    lower = {name.lower(): value for name, value in headers.items()}
    assert lower['authorization'] == 'Bearer t0ken'
    assert 'idempotency-key' in lower
    assert state(answer) in ('completed', 'failed')
    missing = server.send(get_repository, data({'owner': 'a'}))
    assert state(missing) == 'rejected'


def test_allow_list_limits_the_operations(start, recorder):
    url, requests = recorder
    server = start(
        f'[openapi.github]\nfile = {json.dumps(str(DOCUMENT))}\nbase_url = "{url}"\noperations = ["meta/root", "meta/get"]\n'
    )
    skills = server.get('/.well-known/agent-card.json')['skills']
    assert len(skills) == 2
    root = next(skill['id'] for skill in skills if skill['id'].endswith('root'))
    server.send(root, data({}))
    assert requests[-1][:2] == ('GET', '/')
