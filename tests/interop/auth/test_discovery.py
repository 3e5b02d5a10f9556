"""Access tokens of an OpenID provider that a2ad finds by discovery."""

import json
import urllib.request

from collections.abc import Iterator
from typing import NamedTuple

import jwt
import pytest

from calls import Agents, bearer
from conftest import Start, StartProvider
from helpers import eventually
from provider import Provider
from tokens import Jose, base64url, public


def config(provider: Provider) -> str:
    return f"""
[server]
default_agent = "main"
[auth]
issuers = [{{ issuer = "{provider.url}", audience = "a2ad" }}]
[skills]
echo = {{ builtin = "echo" }}
[agents]
main = {{ skills = ["echo"], auth = ["oidc"] }}
"""


class Deployment(NamedTuple):
    provider: Provider
    server: Agents


@pytest.fixture(scope='session')
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A provider and a server that the first and the last test share: the server does not ask for the keys of an issuer
    twice within 30 seconds."""
    directory = tmp_path_factory.mktemp('deployment')
    provider = Provider(directory / 'keys.json')
    server = Agents(config(provider), directory, {})
    yield Deployment(provider, server)
    server.kill()
    provider.stop()


def test_tokens_of_every_algorithm_are_accepted(deployment: Deployment) -> None:
    provider, server = deployment
    server.refused({}, 'requires a credential')
    for algorithm in ('RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'):
        token = provider.token(algorithm=algorithm)
        assert jwt.get_unverified_header(token)['alg'] == algorithm
        server.accepted(bearer(token))


def test_clients_of_the_provider_see_only_their_own_tasks(start: Start, start_provider: StartProvider) -> None:
    provider = start_provider()
    server = start(config(provider))
    task = server.accepted(bearer(provider.token('alice')))
    assert server.tasks(bearer(provider.token('alice', algorithm='RS256'))) == {task}
    assert server.tasks(bearer(provider.token('bob'))) == set()


def test_card_has_the_address_of_the_discovery_document(start: Start, start_provider: StartProvider) -> None:
    provider = start_provider()
    schemes = start(config(provider)).card()['securitySchemes']
    (url,) = {url for scheme in schemes.values() if (url := discovery_url(scheme))}
    with urllib.request.urlopen(url, timeout=30) as response:
        assert json.load(response)['issuer'] == provider.url


def discovery_url(scheme: dict) -> str | None:
    """In the form of 0.3 or of 1.0."""
    scheme = scheme.get('openIdConnectSecurityScheme', scheme)
    return scheme.get('openIdConnectUrl')


def test_tokens_for_others_are_refused(start: Start, start_provider: StartProvider) -> None:
    provider = start_provider()
    server = start(config(provider))
    server.accepted(bearer(provider.token()))
    server.refused(bearer(provider.token(audience='another')), 'another audience')


def test_tokens_of_another_issuer_are_refused(start: Start, start_provider: StartProvider) -> None:
    provider = start_provider()
    server = start(config(provider))
    # It has the same keys, so that only the claim differs.
    other = start_provider(issuer='https://another.example')
    server.refused(bearer(other.token()), 'issuer is unknown')
    server.accepted(bearer(provider.token()))
    server.refused(bearer(start_provider('other-keys').token()), 'issuer is unknown')


def test_tokens_with_another_key_are_refused(start: Start, start_provider: StartProvider, jose: Jose) -> None:
    provider = start_provider()
    server = start(config(provider))
    token = provider.token()
    header, claims = jwt.get_unverified_header(token), jwt.decode(token, options={'verify_signature': False})
    (key,) = jose.generate('ES256')
    server.refused(bearer(jose.sign(claims, key, **header)), 'signature')
    server.refused(bearer(jose.sign(claims, key, **header, jwk=public(key))), 'signature')
    server.accepted(bearer(token))


@pytest.mark.parametrize('part', [0, 1, 2], ids=['header', 'claims', 'signature'])
def test_changed_tokens_are_refused(start: Start, start_provider: StartProvider, part: int) -> None:
    provider = start_provider()
    server = start(config(provider))
    for algorithm in ('RS256', 'ES256'):
        token = provider.token(algorithm=algorithm)
        server.accepted(bearer(token))
        parts = token.split('.')
        if part == 2:
            parts[2] = parts[2][:-8] + ('A' if parts[2][-8] != 'A' else 'B') + parts[2][-7:]
        else:
            decoded = json.loads(jwt.utils.base64url_decode(parts[part]))
            changed = {**decoded, **({'typ': 'JWT'} if part == 0 else {'sub': 'bob'})}
            parts[part] = base64url(json.dumps(changed).encode())
        server.refused(bearer('.'.join(parts)), 'signature')


def test_expired_tokens_are_refused(start: Start, start_provider: StartProvider) -> None:
    provider = start_provider()
    server = start(config(provider))
    # The same provider an hour ago: its tokens are valid for ten minutes.
    earlier = start_provider(issuer=provider.url, clock=-3600)
    server.refused(bearer(earlier.token()), 'expired')
    server.accepted(bearer(provider.token()))


@pytest.mark.late
def test_keys_can_be_rotated(deployment: Deployment, start_provider: StartProvider) -> None:
    provider, server = deployment
    old = provider.token()
    task = server.accepted(bearer(old))
    provider.stop()
    rotated = start_provider('new-keys', port=provider.port)
    new = rotated.token()
    assert jwt.get_unverified_header(new)['kid'] != jwt.get_unverified_header(old)['kid']
    eventually(lambda: server.send(bearer(new)).status == 200 or None, limit=45)
    assert task in server.tasks(bearer(rotated.token(algorithm='RS256')))
    # The provider has withdrawn this key.
    server.refused(bearer(old), 'no key with its kid')


def test_provider_may_be_down(start: Start, start_provider: StartProvider) -> None:
    provider = start_provider()
    server = start(config(provider))
    token = provider.token()
    server.accepted(bearer(token))
    provider.stop()
    server.accepted(bearer(token))

    fresh = start(config(provider), 'fresh')
    response = fresh.send(bearer(token))
    assert response.status == 503, response.body
    assert 'WWW-Authenticate' not in response.headers

    start_provider(port=provider.port)
    eventually(lambda: succeeded(fresh, token))


def succeeded(server: Agents, token: str) -> bool | None:
    response = server.send(bearer(token))
    assert response.status in {200, 503}, response.body
    return response.status == 200 or None
