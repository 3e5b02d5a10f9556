"""A process of the OpenID provider."""

import json
import subprocess
import urllib.parse
import urllib.request

from pathlib import Path
from typing import Any

from environment import NODE
from tokens import node_script


class Provider:
    """`keys` is the file of its private keys. Other options are those of `openid_provider.js`."""

    def __init__(self, keys: Path, **options: Any) -> None:
        arguments = json.dumps({'keys': str(keys), **options})
        self.process = subprocess.Popen(
            [NODE, node_script('openid_provider.js'), arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.url = self.process.stdout.readline().strip()
        assert self.url, 'the OpenID provider did not start'

    @property
    def port(self) -> int:
        return urllib.parse.urlsplit(self.url).port

    def token(self, client: str = 'alice', audience: str = 'a2ad', algorithm: str = 'ES256') -> str:
        """An access token by the grant of client credentials."""
        form = {
            'grant_type': 'client_credentials',
            'client_id': client,
            'client_secret': f'secret of {client}',
            'resource': f'https://resource.example/{audience}/{algorithm}',
        }
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(f'{self.url}/token', data, timeout=30) as response:
            return json.load(response)['access_token']

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
