"""The two libraries that make and verify tokens: PyJWT and the npm package jose. Keys are JSON Web Keys."""

import base64
import json
import shutil
import subprocess
import time

from pathlib import Path
from typing import Any, Protocol

import jwt

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import get_default_algorithms

from environment import NODE, PACKAGES


Json = dict[str, Any]


def secret(text: str) -> Json:
    """The key of a shared secret."""
    return {'kty': 'oct', 'alg': 'HS256', 'k': base64url(text.encode())}


def public(key: Json) -> Json:
    """The public half of a private key."""
    return {name: value for name, value in key.items() if name not in {'d', 'p', 'q', 'dp', 'dq', 'qi'}}


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def claims(**others: Any) -> Json:
    """The claims of a valid token, with changes; `None` removes one."""
    all_claims = {'sub': 'alice', 'iat': now(), 'exp': now() + 600, **others}
    return {name: value for name, value in all_claims.items() if value is not None}


def now() -> int:
    return int(time.time())


class Library(Protocol):
    def sign(self, payload: Json, key: Json, **header: Any) -> str: ...

    def verify(self, token: str, key: Json, **expected: str) -> Json: ...


class PyJwt:
    def sign(self, payload: Json, key: Json, **header: Any) -> str:
        algorithm = header.pop('alg', key['alg'])
        prepared = get_default_algorithms()[algorithm].from_jwk(json.dumps(key))
        return jwt.encode(payload, prepared, algorithm, {**kid(key), **header})

    def verify(self, token: str, key: Json, **expected: str) -> Json:
        options = {'require': ['exp', 'sub']}
        return jwt.decode(token, jwt.PyJWK(key).key, [key['alg']], options=options, **expected)

    @staticmethod
    def public_pem(key: Json) -> str:
        """The public half of a key as text."""
        pem = jwt.PyJWK(public(key)).key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem.decode()


class Jose:
    def sign(self, payload: Json, key: Json, **header: Any) -> str:
        header = {'alg': key['alg'], 'typ': 'JWT', **kid(key), **header}
        return self.run({'step': 'sign', 'header': header, 'claims': payload, 'key': key})[0]

    def verify(self, token: str, key: Json, **expected: str) -> Json:
        options = {'requiredClaims': ['exp', 'sub'], 'algorithms': [key['alg']], **expected}
        return self.run({'step': 'verify', 'token': token, 'key': key, 'options': options})[0]['claims']

    def generate(self, *algorithms: str) -> list[Json]:
        """A private key for each algorithm."""
        return self.run(*({'step': 'generate', 'alg': alg, 'kid': f'key of {alg}'} for alg in algorithms))

    def unsecured(self, payload: Json) -> str:
        """A token with the algorithm `none`."""
        return self.run({'step': 'unsecured', 'claims': payload})[0]

    def run(self, *steps: Json) -> list[Any]:
        done = subprocess.run(
            [NODE, node_script('jose_tokens.js'), json.dumps(steps)], capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def kid(key: Json) -> Json:
    return {'kid': key['kid']} if 'kid' in key else {}


def node_script(name: str, packages: Path = PACKAGES) -> str:
    """A script of this folder beside the packages, where Node.js looks for them."""
    return str(shutil.copyfile(Path(__file__).with_name(name), (packages / name).with_suffix('.mjs')))
