"""A tool of the current MCP revision that asks for input: the question survives a restart of a2ad."""

import json
import socket
import subprocess
import sys
import time

from pathlib import Path

import pytest

from helpers import data, result, state, status_text


@pytest.fixture
def shop():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name('input_required_server.py')
    process = subprocess.Popen([sys.executable, str(script), str(port)], stderr=subprocess.DEVNULL)
    for _ in range(400):
        try:
            socket.create_connection(('127.0.0.1', port)).close()
            break
        except OSError:
            assert process.poll() is None, 'the MCP server ended'
            time.sleep(0.05)
    yield f'http://127.0.0.1:{port}/mcp'
    process.kill()
    process.wait()


def test_question_survives_a_restart(start, shop):
    config = f'[mcp.shop]\nurl = "{shop}"\n'
    first = start(config)
    task = first.send('order', data({'item': 'shoes'}))
    assert state(task) == 'input_required', task['status']
    assert 'Which size?' in status_text(task)
    first.kill()
    second = start(config)
    done = second.send('', data({'size': '42'}), taskId=task['id'])
    assert 'ordered shoes in 42' in json.dumps(result(done))
