"""A trace from a client through the server to a tool of an MCP server is whole in an OTLP collector."""

import json
import sys

from collections.abc import Iterator
from pathlib import Path

import pytest

from collector import Collector, Span
from conftest import Start
from helpers import Server


SERVER = Path(__file__).parent.parent / 'backends' / 'counting_server.py'
TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
CLIENT = '00f067aa0ba902b7'
NAMES = ('request', 'run', 'commit', 'backend call')
# The kinds of OTLP.
INTERNAL, SERVER_KIND, CLIENT_KIND = 1, 2, 3


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.stop()


@pytest.fixture
def server(start: Start, collector: Collector) -> Server:
    command = json.dumps([sys.executable, str(SERVER)])
    return start(f"""
[telemetry]
otlp = "{collector.url}"
[mcp.counter]
command = {command}
[agents.main]
skills = ["mcp:counter/meta"]
""")


def call(server: Server, traceparent: str) -> dict[str, str]:
    """Calls the tool; the metadata that it has got."""
    message = {'messageId': 'm', 'role': 'ROLE_USER', 'parts': [{'data': {}}]}
    params = {'message': message, 'metadata': {'skillId': 'meta'}}
    body = {'jsonrpc': '2.0', 'id': 1, 'method': 'SendMessage', 'params': params}
    headers = {'A2A-Version': '1.0', 'traceparent': traceparent, 'tracestate': 'vendor=1'}
    parts = server.post('/a2a/main', body, headers)['result']['task']['artifacts'][0]['parts']
    return next(part['data'] for part in parts if 'data' in part)


def one(spans: list[Span], name: str) -> Span:
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, spans
    return found[0]


def test_trace_is_whole(server: Server, collector: Collector) -> None:
    meta = call(server, f'00-{TRACE}-{CLIENT}-01')
    spans = collector.trace(TRACE, *NAMES)
    request, run, backend = (one(spans, name) for name in ('request', 'run', 'backend call'))
    assert (request.parent, request.kind) == (CLIENT, SERVER_KIND)
    assert (run.parent, run.kind) == (request.id, INTERNAL)
    assert (backend.parent, backend.kind) == (run.id, CLIENT_KIND)
    commits = [span for span in spans if span.name == 'commit']
    assert {span.parent for span in commits} <= {request.id, run.id}
    assert {span.service for span in spans} == {'a2ad'}
    for span in spans:
        assert 0 <= span.end - span.start < 60e9
    assert run.start <= backend.start and backend.end <= run.end
    # The tool is the next span of the same trace.
    assert meta['traceparent'] == f'00-{TRACE}-{backend.id}-01'
    assert meta['tracestate'] == 'vendor=1'


def test_trace_that_is_not_sampled_is_passed_on_and_not_sent(server: Server, collector: Collector) -> None:
    other = TRACE.replace('4bf9', '5bf9')
    meta = call(server, f'00-{other}-{CLIENT}-00')
    assert meta['traceparent'].startswith(f'00-{other}-') and meta['traceparent'].endswith('-00')
    call(server, f'00-{TRACE}-{CLIENT}-01')
    collector.trace(TRACE, *NAMES)
    assert [span for span in collector.spans if span.trace == other] == []


def test_last_spans_are_sent_at_shutdown(server: Server, collector: Collector) -> None:
    call(server, f'00-{TRACE}-{CLIENT}-01')
    assert server.stop() == 0
    # Nothing is sent after the end of the process.
    assert set(NAMES) <= {span.name for span in collector.spans if span.trace == TRACE}


def test_server_works_without_its_collector(start: Start) -> None:
    server = start('[telemetry]\notlp = "http://127.0.0.1:1"\n[skills.hello]\nbuiltin = "echo"\n')
    assert server.send('', {'text': 'hello'})['status']['state'] == 'TASK_STATE_COMPLETED'
    assert server.stop() == 0
