"""The examples in Python and TypeScript: they stream, ask back, and go on after the server was killed."""

import os
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from helpers import descendants, eventually, is_running, state, status_text, text


EXAMPLES = Path(__file__).parents[3] / 'examples'


@pytest.fixture(scope='session')
def config(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example's configuration, with JavaScript for a Node.js that cannot run TypeScript."""
    compiled = tmp_path_factory.mktemp('examples') / 'jsonl-agent.mjs'
    esbuild = Path(os.environ['PACKAGES']) / 'node_modules/.bin/esbuild'
    subprocess.run(
        [esbuild, EXAMPLES / 'jsonl-agent.ts', '--format=esm', f'--outfile={compiled}', '--log-level=error'],
        check=True,
    )
    return (
        (EXAMPLES / 'jsonl-agent.toml')
        .read_text()
        .replace('"python3", "jsonl-agent.py"', f'"{sys.executable}", "{EXAMPLES}/jsonl-agent.py"')
        .replace('"node", "jsonl-agent.ts"', f'"{shutil.which(os.environ["NODE"])}", "{compiled}"')
    )


@pytest.mark.parametrize('agent', ['python', 'typescript'])
def test_example_asks_streams_and_goes_on_after_kill_9(start, config, agent):
    first = start(config)
    asked = first.send('', text('the sea'), agent=agent)
    assert (state(asked), status_text(asked)) == ('input_required', 'How many sections shall the report have?')

    events = first.stream('', text('6'), agent=agent, taskId=asked['id'])
    updates = (event['artifactUpdate'] for event in events if 'artifactUpdate' in event)
    assert next(updates)['artifact']['parts'] == [{'text': 'the sea, section 1\n'}]
    assert next(updates)['artifact']['parts'] == [{'text': 'the sea, section 2\n'}]
    processes = descendants(first.pid)
    assert len(processes) >= 2, 'the supervisor and the command'
    first.kill()

    second = start(config)
    done = second.wait(asked['id'], 'completed', 'failed', agent=agent)
    (artifact,) = done['artifacts']
    expected = [f'the sea, section {section}\n' for section in range(1, 7)]
    assert [part['text'] for part in artifact['parts']] == expected
    eventually(lambda: True if not any(map(is_running, processes)) else None, 6)


def test_example_asks_again_after_an_unusable_answer(start, config):
    server = start(config)
    asked = server.send('', text('the sea'), agent='python')
    again = server.send('', text('a few'), agent='python', taskId=asked['id'])
    assert state(again) == 'input_required', again['status']
    done = server.send('', text(' 1 '), agent='python', taskId=asked['id'])
    assert state(done) == 'completed', done['status']
