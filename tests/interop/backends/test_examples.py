"""The examples in Python and TypeScript: they stream, ask back, and continue after the server was killed."""

import json
import os
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from helpers import state, text, toml_list


EXAMPLES = Path(__file__).parents[3] / 'examples'


@pytest.fixture(params=['python', 'typescript'])
def script(request, tmp_path):
    if request.param == 'python':
        return [sys.executable, str(EXAMPLES / 'jsonl-agent.py')]
    compiled = tmp_path / 'jsonl-agent.mjs'
    esbuild = Path(os.environ['PACKAGES']) / 'node_modules/.bin/esbuild'
    subprocess.run(
        [esbuild, EXAMPLES / 'jsonl-agent.ts', '--format=esm', f'--outfile={compiled}', '--log-level=error'],
        check=True,
    )
    return [os.environ.get('NODE') or shutil.which('node'), str(compiled)]


def test_example_streams_asks_and_resumes(start, script):
    config = f'[skills.writer]\ncommand = {{ argv = {toml_list(script)}, protocol = "jsonl" }}\n'
    first = start(config)
    task = first.send('writer', text('the sea'), wait=False)
    asked = first.wait(task['id'], 'input_required', 'completed')
    assert state(asked) == 'input_required', asked
    first.kill()
    second = start(config)
    done = second.send('', text('4'), taskId=task['id'])
    assert state(done) == 'completed', done['status']
    assert 'the sea' in json.dumps(done['artifacts'])
