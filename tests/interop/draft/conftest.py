"""The agents of the server under test, called with the first draft of the protocol.

`A2AD_URL` is the URL of a running server, such as `http://127.0.0.1:4242`. Nothing here starts or stops it.
"""

import os

from collections.abc import Callable, Iterator

import httpx
import pytest

from helpers import Agent


@pytest.fixture(scope='session')
def url() -> str:
    """The server's URL, without a trailing slash."""
    return os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
def agent(url: str) -> Iterator[Callable[[str], Agent]]:
    """Returns an agent by its name; without a name, the default agent at the root."""
    # Proxy variables are ignored: the server is on this machine.
    with httpx.Client(timeout=10, trust_env=False) as http:
        yield lambda name='': Agent(http, f'{url}/a2a/{name}' if name else f'{url}/')
