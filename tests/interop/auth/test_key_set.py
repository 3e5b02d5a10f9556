"""Tokens with a public key from a key set at a configured address (`jwks_uri`), made by jose and PyJWT."""

import json

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from calls import Agents, bearer
from conftest import Start
from tokens import Jose, Json, Library, PyJwt, base64url, claims, public


ISSUER = 'https://id.example'
ALGORITHMS = ('RS256', 'PS256', 'ES256', 'ES384', 'EdDSA')


@pytest.fixture(scope='module')
def keys() -> dict[str, Json]:
    """Private keys, by algorithm."""
    return dict(zip(ALGORITHMS, Jose().generate(*ALGORITHMS), strict=True))


@pytest.fixture
def key_set(keys: dict[str, Json]) -> Iterator[str]:
    """A server of the public keys; its URL."""
    document = json.dumps({'keys': [public(key) for key in keys.values()]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header('Content-Type', 'application/jwk-set+json')
            self.send_header('Content-Length', str(len(document)))
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{server.server_port}/keys'
        server.shutdown()


@pytest.fixture
def server(start: Start, keys: dict[str, Json], key_set: str) -> Agents:
    server = start(f"""
[server]
default_agent = "main"
[auth]
issuers = [{{ issuer = "{ISSUER}", audience = "a2ad", jwks_uri = "{key_set}" }}]
[skills]
echo = {{ builtin = "echo" }}
[agents]
main = {{ skills = ["echo"], auth = ["oidc", "jwt"] }}
""")
    server.accepted(bearer(PyJwt().sign(of_issuer(sub='somebody'), keys['ES256'])))
    return server


def of_issuer(**others: object) -> Json:
    return claims(**{'iss': ISSUER, 'aud': 'a2ad', **others})


def test_tokens_of_every_algorithm_are_accepted(server: Agents, keys: dict[str, Json], library: Library) -> None:
    task = server.accepted(bearer(library.sign(of_issuer(), keys['ES256'])))
    for algorithm, key in keys.items():
        assert server.tasks(bearer(library.sign(of_issuer(), key))) == {task}, algorithm
    assert server.tasks(bearer(library.sign(of_issuer(aud=['another', 'a2ad']), keys['EdDSA']))) == {task}


def test_tokens_without_a_required_claim_are_refused(server: Agents, keys: dict[str, Json], jose: Jose) -> None:
    for claim in ('aud', 'exp', 'sub'):
        server.refused(bearer(jose.sign(of_issuer(**{claim: None}), keys['ES256'])), f'it has no {claim}')
    server.refused(bearer(jose.sign(of_issuer(iss=None), keys['ES256'])), 'it has no iss')


def test_public_key_is_no_secret(server: Agents, keys: dict[str, Json], jose: Jose) -> None:
    """A token with the algorithm HS256 and a text that everybody knows."""
    key = keys['RS256']
    pem = PyJwt.public_pem(key)
    for text in (pem, pem.rstrip(), json.dumps(public(key)), key['n']):
        shared = {'kty': 'oct', 'alg': 'HS256', 'k': base64url(text.encode()), 'kid': key['kid']}
        server.refused(bearer(jose.sign(of_issuer(), shared)), 'signature')
        server.refused(bearer(jose.sign(of_issuer(iss=None), shared)), 'signature')


def test_headers_do_not_choose_the_key(server: Agents, keys: dict[str, Json], jose: Jose, key_set: str) -> None:
    (own,) = jose.generate('ES256')
    for header in ({'jwk': public(own)}, {'jku': key_set}, {'x5u': key_set}):
        server.refused(bearer(jose.sign(of_issuer(), own, **header)), 'signature')
    server.refused(bearer(jose.sign(of_issuer(), own, kid='unknown')), 'no key with its kid')
    server.accepted(bearer(jose.sign(of_issuer(), keys['ES256'])))


def test_tokens_with_another_algorithm_of_the_key_are_refused(
    server: Agents, keys: dict[str, Json], jose: Jose
) -> None:
    """The key set states the algorithm of each key."""
    key = {name: value for name, value in keys['RS256'].items() if name != 'alg'}
    server.refused(bearer(jose.sign(of_issuer(), {**key, 'alg': 'PS256'})), 'signature')
    server.refused(bearer(jose.sign(of_issuer(), {**key, 'alg': 'RS512'})), 'algorithm')
    server.refused(bearer(jose.unsecured(of_issuer())), 'algorithm')


def test_critical_headers_are_refused(server: Agents, keys: dict[str, Json]) -> None:
    server.refused(bearer(PyJwt().sign(of_issuer(), keys['ES256'], crit=['b64'], b64=True)), 'crit')
