"""The client under test, run as its users run it, against a sample agent on a server nobody here wrote.

`A2AD_PROGRAM` is the program, `AGENT_URL` a running agent of the kind that lies in the folders beside this file,
and `AGENT_SDK` the name of that folder. Nothing here starts or stops the agent.

What a sample agent does is told in the first word it hears: `hello` is answered by a bare message, `write N` by an
artifact of N chunks, `ask` and `login` wait for more, `fail` and `reject` end badly, `hold` works until it is
cancelled, `crash` breaks the agent, and all else comes back as it was sent.
"""

import json
import os
import subprocess

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


# The versions each server speaks, the one that its card leads to first.
VERSIONS = {'python': ['1.0', '0.3'], 'python03': ['0.3'], 'javascript': ['1.0', '0.3']}
SDK = os.environ['AGENT_SDK']

# How long a call may take before it counts as hung. No assertion depends on it.
LIMIT_SECONDS = 30


@dataclass
class Outcome:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    def documents(self) -> list[Any]:
        """What was written with --json: one document a line."""
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
    """Runs a verb against the agent: `run('tasks get', 'id')`. What is spoken is what the card prefers, unless that
    is another version."""
    flags = [] if version == VERSIONS[SDK][0] else ['--dialect', version]

    def run(verb: str, *words: str, agent: str = url, stdin: str = '', code: int = 0) -> Outcome:
        ended = subprocess.run(
            [os.environ['A2AD_PROGRAM'], *verb.split(), agent, *flags, *words],
            input=stdin,
            capture_output=True,
            encoding='utf-8',
            env={name: value for name, value in os.environ.items() if not name.startswith('A2AD_')},
            timeout=LIMIT_SECONDS,
            check=False,
        )
        outcome = Outcome(ended.returncode, ended.stdout, ended.stderr)
        assert outcome.code == code, outcome
        assert 'panicked' not in outcome.err, outcome
        return outcome

    return run


@pytest.fixture
def start(run: Run) -> Callable[..., dict[str, Any]]:
    """Sends a message and does not wait; gives the task as the answer has it."""

    def start(*words: str) -> dict[str, Any]:
        return run('send', '--async', '--json', *words).document()['task']

    return start
