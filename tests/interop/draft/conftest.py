"""The agents of the server under test, spoken to in the draft.

`A2AD_URL` names a running server, as `http://127.0.0.1:4242`. Nothing here starts or stops it.
"""

import os

from collections.abc import Callable, Iterator

import httpx
import pytest

from talk import Agent


@pytest.fixture(scope='session')
def url() -> str:
    """The server's address, without a slash at the end."""
    return os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
def agent(url: str) -> Iterator[Callable[[str], Agent]]:
    """An agent by its name, or the default one at the root."""
    # Proxies of the environment are ignored: the server is on this machine.
    with httpx.Client(timeout=10, trust_env=False) as http:
        yield lambda name='': Agent(http, f'{url}/a2a/{name}' if name else f'{url}/')
