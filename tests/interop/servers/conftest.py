"""The client under test, run from its command line, against a sample agent on the server of another SDK.

`A2AD_PROGRAM` is the program, `AGENT_URL` the URL of a running sample agent, and `AGENT_SDK` the name of the folder
here that contains the agent. Nothing here starts or stops the agent.

A message to a sample agent starts with a command: `hello` returns a message without a task, `write N` an artifact of
N chunks, `ask` requires input and `login` credentials, `fail` and `reject` end the task in that state, `hold` works
until the task is cancelled, and `crash` raises an error in the agent. Any other message is echoed unchanged.
"""

import json
import os
import subprocess

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


# The protocol versions of each server; the first is the one that its card prefers.
VERSIONS = {'python': ['1.0', '0.3'], 'python03': ['0.3'], 'javascript': ['1.0', '0.3']}
SDK = os.environ['AGENT_SDK']

# Timeout after which a call counts as hung; no assertion depends on it.
LIMIT_SECONDS = 30


@dataclass
class Outcome:
    """The result of one run of the program."""

    code: int
    out: str
    err: str

    def documents(self) -> list[Any]:
        """The output of --json: one document per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def document(self) -> Any:
        (document,) = self.documents()
        return document


Run = Callable[..., Outcome]


@pytest.fixture(scope='session')
def url() -> str:
    return os.environ['AGENT_URL']


@pytest.fixture(params=VERSIONS[SDK])
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(url: str, version: str) -> Run:
    """Runs a subcommand against the agent: `run('tasks get', 'id')`. The version that the card prefers is not passed
    as a flag, any other version is."""
    flags = [] if version == VERSIONS[SDK][0] else ['--dialect', version]

    def run(verb: str, *args: str, agent: str = url, stdin: str = '', code: int = 0) -> Outcome:
        completed = subprocess.run(
            [os.environ['A2AD_PROGRAM'], *verb.split(), agent, *flags, *args],
            input=stdin,
            capture_output=True,
            encoding='utf-8',
            env={name: value for name, value in os.environ.items() if not name.startswith('A2AD_')},
            timeout=LIMIT_SECONDS,
            check=False,
        )
        outcome = Outcome(completed.returncode, completed.stdout, completed.stderr)
        assert outcome.code == code, outcome
        assert 'panicked' not in outcome.err, outcome
        return outcome

    return run


@pytest.fixture
def start_task(run: Run) -> Callable[..., dict[str, Any]]:
    """Sends a message without waiting and returns the task of the response."""

    def start_task(*args: str) -> dict[str, Any]:
        return run('send', '--async', '--json', *args).document()['task']

    return start_task
