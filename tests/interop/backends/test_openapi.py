"""The public OpenAPI document of GitHub, of 700 operations, against a server that records requests."""

import json
import os
import threading
import time

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers import Server, data, result, state, status_text, text


DOCUMENT = Path(os.environ['PACKAGES']) / 'node_modules/@octokit/openapi/generated/api.github.com.json'


class Recorder:
    """Answers every request with `answer` and keeps it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answer: tuple[int, str, bytes] = (204, '', b'')
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get('content-length') or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                recorder.requests.append((self.command, self.path, headers, body))
                status, media_type, content = recorder.answer
                self.send_response(status)
                if status != 204:
                    self.send_header('content-type', media_type)
                    self.send_header('content-length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answers(self, content: object, status: int = 200) -> None:
        self.answer = (status, 'application/json', json.dumps(content).encode())


@pytest.fixture
def recorder():
    recorder = Recorder()
    yield recorder
    recorder.server.shutdown()


def github(start, recorder: Recorder, *lines: str) -> Server:
    table = [f'file = {json.dumps(str(DOCUMENT))}', f'base_url = "{recorder.url}/api/v3/"', *lines]
    return start('\n'.join(['[openapi.github]', *table]), env={'TOKEN': 'Bearer t0ken'})


# Operation, arguments, and the request that the document asks for. All kinds of parameters that it has.
SAMPLES = [
    ('meta/root', {}, 'GET /', None),
    ('repos/get', {'owner': 'a/b', 'repo': 'c d'}, 'GET /repos/a%2Fb/c%20d', None),
    (
        'repos/get-content',
        {'owner': 'o', 'repo': 'r', 'path': 'src/ü.rs', 'ref': 'a&b=c'},
        'GET /repos/o/r/contents/src%2F%C3%BC.rs?ref=a%26b%3Dc',
        None,
    ),
    (
        'issues/list-for-repo',
        {'owner': 'o', 'repo': 'r', 'labels': 'bug,ui', 'since': '2026-01-02T03:04:05Z', 'per_page': 100},
        'GET /repos/o/r/issues?labels=bug%2Cui&since=2026-01-02T03%3A04%3A05Z&per_page=100',
        None,
    ),
    ('activity/list-notifications-for-authenticated-user', {'all': True}, 'GET /notifications?all=true', None),
    ('activity/get-thread', {'thread_id': 9007199254740993}, 'GET /notifications/threads/9007199254740993', None),
    (
        'issues/create',
        {'owner': 'o', 'repo': 'r', 'body': {'title': 'T', 'milestone': None, 'labels': ['a', {'name': 'b'}]}},
        'POST /repos/o/r/issues',
        {'title': 'T', 'milestone': None, 'labels': ['a', {'name': 'b'}]},
    ),
    (
        'issues/update',
        {'owner': 'o', 'repo': 'r', 'issue_number': 7, 'body': {'state': 'closed'}},
        'PATCH /repos/o/r/issues/7',
        {'state': 'closed'},
    ),
    ('activity/star-repo-for-authenticated-user', {'owner': 'o', 'repo': 'r'}, 'PUT /user/starred/o/r', None),
    ('repos/delete', {'owner': 'o', 'repo': 'r'}, 'DELETE /repos/o/r', None),
    ('markdown/render-raw', {'body': '# T\n'}, 'POST /markdown/raw', '# T\n'),
]


def test_operations_of_a_large_document(start, recorder):
    began = time.monotonic()
    server = github(start, recorder, 'headers_env = { authorization = "TOKEN" }')
    started = time.monotonic() - began
    card = server.get('/.well-known/agent-card.json')
    operations = [
        (method, path, operation)
        for path, item in json.loads(DOCUMENT.read_text())['paths'].items()
        for method, operation in item.items()
        if method in ('get', 'put', 'post', 'delete', 'patch')
    ]
    skills = {skill['id']: skill for skill in card['skills']}
    missing = [operation['operationId'] for *_, operation in operations if operation['operationId'] not in skills]
    print(f'{len(skills)} of {len(operations)} operations are skills after {started:.2f} s; skipped: {missing}')
    # One operation has a server of its own.
    assert missing == ['repos/upload-release-asset']
    assert started < 15
    for skill, arguments, line, body in SAMPLES:
        recorder.answer = (204, '', b'')
        task = server.send(skill, data(arguments))
        assert recorder.requests, task['status']
        method, path, headers, sent = recorder.requests.pop()
        assert f'{method} {path.removeprefix("/api/v3")}' == line
        assert path.startswith('/api/v3/')
        assert headers['authorization'] == 'Bearer t0ken'
        assert headers['idempotency-key'] and headers['a2ad-attempt'] == '1'
        if body is None:
            assert not sent
        elif isinstance(body, str):
            assert (headers['content-type'], sent.decode()) in (('text/plain', body), ('text/x-markdown', body))
        else:
            assert (headers['content-type'], json.loads(sent)) == ('application/json', body)
        # A result that the document does not describe is a failure that says so.
        described = state(task) == 'completed' or 'does not match its output schema' in status_text(task)
        assert described, task['status']
        assert recorder.requests == []


def test_arguments_and_results_are_checked(start, recorder):
    server = github(start, recorder, 'operations = ["meta/get-zen", "gists/*-comment", "issues/create", "emojis/get"]')
    skills = [skill['id'] for skill in server.get('/.well-known/agent-card.json')['skills']]
    assert sorted(skills) == [
        'emojis/get',
        'gists/create-comment',
        'gists/delete-comment',
        'gists/get-comment',
        'gists/update-comment',
        'issues/create',
        'meta/get-zen',
    ]
    rejected = server.send('issues/create', data({'owner': 'o', 'repo': 'r', 'body': {'labels': ['a']}}))
    assert (state(rejected), status_text(rejected)) == ('rejected', 'arguments.body: "title" is a required property')
    rejected = server.send('gists/get-comment', data({'gist_id': '..', 'comment_id': 1}))
    assert status_text(rejected) == 'arguments.gist_id: a path must not have a segment . or ..'
    rejected = server.send('gists/get-comment', data({'gist_id': 'g', 'comment_id': 'one'}))
    assert status_text(rejected) == 'arguments.comment_id: "one" is not of type "integer"'
    assert recorder.requests == []
    recorder.answers({'+1': 'u'})
    assert result(server.send('emojis/get', text('all of them'))) == [data({'+1': 'u'})]
    recorder.answers({'+1': 1})
    failed = server.send('emojis/get', data({}))
    assert 'does not match its output schema: result.+1: 1 is not of type "string"' in status_text(failed)
    recorder.answers({'message': 'Not Found', 'documentation_url': 'https://docs'}, status=404)
    failed = server.send('gists/get-comment', data({'gist_id': 'g', 'comment_id': 1}))
    assert state(failed) == 'failed'
    assert failed['status']['message']['parts'] == [
        text('the backend responded 404 Not Found: Resource Not Found'),
        data({'message': 'Not Found', 'documentation_url': 'https://docs'}),
    ]


def test_fetched_document_has_its_own_server_and_credentials(start, recorder):
    document = {
        'openapi': '3.1.0',
        'servers': [{'url': 'v1'}],
        'paths': {'/a': {'get': {'operationId': 'a', 'security': [{'key': [], 'user': []}]}}},
        'components': {
            'securitySchemes': {
                'key': {'type': 'apiKey', 'in': 'query', 'name': 'k'},
                'user': {'type': 'http', 'scheme': 'basic'},
            }
        },
    }
    recorder.answers(document)
    server = start(
        f'[openapi.shop]\nurl = "{recorder.url}/docs/openapi.json"\n'
        '[openapi.shop.security]\nkey = { token_env = "KEY" }\nuser = { user = "ann", password_env = "PASSWORD" }\n',
        env={'KEY': 'top&secret', 'PASSWORD': 'p'},
    )
    assert [skill['id'] for skill in server.get('/.well-known/agent-card.json')['skills']] == ['a']
    recorder.answer = (401, 'text/plain', b'who are you?')
    refused = server.send('a', data({}))
    assert status_text(refused) == 'the backend responded 401 Unauthorized: who are you?'
    recorder.answers([1])
    assert result(server.send('a', data({}))) == [data([1])]
    fetched, _, called = recorder.requests
    assert fetched[:2] == ('GET', '/docs/openapi.json')
    assert 'authorization' not in fetched[2]
    assert called[:2] == ('GET', '/docs/v1/a?k=top%26secret')
    assert called[2]['authorization'] == 'Basic YW5uOnA='
    assert 'top&' not in ''.join(server.log) and 'top%26' not in ''.join(server.log)
