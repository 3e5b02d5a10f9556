"""A real Prometheus reads the metrics, and its own tool finds nothing wrong with them."""

import os
import subprocess
import urllib.request

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Start
from helpers import Server
from prometheus import Prometheus


CONFIG = """
[agents.main]
skills = ["hello"]
[skills.hello]
builtin = "echo"
"""


@pytest.fixture
def server(start: Start) -> Server:
    return start(CONFIG)


@pytest.fixture
def prometheus(server: Server, tmp_path: Path) -> Iterator[Prometheus]:
    started = Prometheus(server.url.removeprefix('http://'), tmp_path)
    yield started
    started.stop()


def test_queries_over_scraped_metrics(server: Server, prometheus: Prometheus) -> None:
    prometheus.reaches('up{job="a2ad"}', 1)
    for _ in range(5):
        server.send('', {'text': 'hello'})
    prometheus.reaches('sum(a2ad_requests_total{binding="jsonrpc",dialect="1.0",outcome="ok"})', 5)
    prometheus.reaches('a2ad_tasks{state="completed"}', 5)
    prometheus.reaches('a2ad_request_duration_seconds_count{binding="jsonrpc"}', 5)
    quantile = 'histogram_quantile(0.99, sum by (le) (a2ad_request_duration_seconds_bucket))'
    assert 0 < prometheus.value(quantile) < 60
    assert prometheus.value('a2ad_build_info') == 1
    assert prometheus.value('time() - process_start_time_seconds') < 120


def test_promtool_finds_no_problem(server: Server) -> None:
    server.send('', {'text': 'hello'})
    with urllib.request.urlopen(f'{server.url}/metrics', timeout=10) as response:
        text = response.read()
    checked = subprocess.run(
        [os.environ['PROMTOOL'], 'check', 'metrics'], input=text, capture_output=True, timeout=30
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b'')
