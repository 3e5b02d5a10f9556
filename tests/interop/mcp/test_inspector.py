"""The command-line mode of the MCP Inspector."""

import json
import os
import subprocess

from pathlib import Path
from typing import Any

import pytest

from conftest import CONFIG, PROGRAM, URL


INSPECTOR = Path(os.environ['PACKAGES']) / 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js'

# The inspector has its own option `--config`.
TARGETS = {
    'http': ([f'{URL}/mcp', '--transport', 'http'], ''),
    'stdio-of-file': ([PROGRAM, 'mcp', '-e', f'A2AD_CONFIG={CONFIG}', '-e', 'A2AD_STORE=none.db'], 'demo__'),
    'stdio-of-server': ([PROGRAM, 'mcp', '-e', f'A2AD_URL={URL}'], 'demo__'),
}


def inspect(target: list[str], home: Path, *arguments: str) -> tuple[int, Any]:
    command = [os.environ['NODE'], str(INSPECTOR), '--cli', *target, *arguments]
    environment = {**os.environ, 'HOME': str(home)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=home)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        pytest.fail(f'exit code {done.returncode}\n{done.stdout}\n{done.stderr}')


@pytest.mark.parametrize('target', TARGETS)
def test_inspector(target: str, tmp_path: Path) -> None:
    server, prefix = TARGETS[target]
    # With `--strict` it fails if a client of some model could not use a schema.
    code, listed = inspect(server, tmp_path, '--method', 'tools/list', '--strict')
    assert code == 0
    assert f'{prefix}add' in [tool['name'] for tool in listed['tools']]
    arguments = ['--method', 'tools/call', '--tool-name', f'{prefix}add', '--tool-arg', 'a=2', 'b=3']
    code, called = inspect(server, tmp_path, *arguments)
    assert code == 0 and called['structuredContent'] == {'sum': 5}
    arguments = ['--method', 'tools/call', '--tool-name', f'{prefix}echo', '--tool-arg', 'message=hello']
    code, called = inspect(server, tmp_path, *arguments)
    assert code == 0 and called['content'] == [{'type': 'text', 'text': 'hello'}]
    code, listed = inspect(server, tmp_path, '--method', 'resources/list')
    uri = listed['resources'][0]['uri']
    code, read = inspect(server, tmp_path, '--method', 'resources/read', '--uri', uri)
    assert code == 0 and json.loads(read['contents'][0]['text'])['name'] == 'demo'
