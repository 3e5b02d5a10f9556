"""HS256 tokens with a shared secret, made and verified by PyJWT and jose."""

import pytest

from calls import Agents, bearer
from conftest import SECRET, Start
from tokens import Jose, Library, PyJwt, claims, now, secret


CONFIG = """
[server]
default_agent = "main"
[auth]
audience = "a2ad"
org_secrets = { "acme.example" = { env = "ACME_SECRET" } }
issuers = [{ issuer = "https://id.example", audience = "a2ad", jwks_uri = "http://127.0.0.1:9/" }]
[skills]
echo = { builtin = "echo" }
[agents]
main = { skills = ["echo"], auth = ["jwt"] }
people = { skills = ["echo"], auth = ["jwt"], end_user = "required" }
"""

KEY = secret(SECRET)
ACME_KEY = secret(SECRET[::-1])


@pytest.fixture
def server(start: Start) -> Agents:
    server = start(CONFIG)
    server.accepted(bearer(PyJwt().sign(claims(sub='somebody'), KEY)))
    return server


def test_tokens_are_accepted(server: Agents, library: Library) -> None:
    server.refused({}, 'requires a credential')
    task = server.accepted(bearer(library.sign(claims(), KEY)))
    for others in (
        {'aud': 'a2ad'},
        {'aud': ['another', 'a2ad']},
        {'iss': 'anybody'},
        {'nbf': now() - 10},
        {'exp': now() + 600.5},
        # The clocks of both sides may differ by a few seconds.
        {'exp': now() - 5},
        {'nbf': now() + 5},
        {'org_domain': 'acme.example'},
    ):
        assert server.tasks(bearer(library.sign(claims(**others), KEY))) == {task}, others


def test_audience_is_the_address_of_the_server_by_default(start: Start, library: Library) -> None:
    server = start(CONFIG.replace('audience = "a2ad"\n', '', 1))
    server.accepted(bearer(library.sign(claims(aud=server.url), KEY)))
    server.refused(bearer(library.sign(claims(aud='http://another.example'), KEY)), 'another audience')
    server.refused(bearer(library.sign(claims(aud='a2ad'), KEY)), 'another audience')


def test_callers_see_only_their_own_tasks(server: Agents, library: Library) -> None:
    callers = {
        'alice': library.sign(claims(), KEY),
        'bob': library.sign(claims(sub='bob'), KEY),
        'alice of acme': library.sign(claims(org_domain='acme.example'), ACME_KEY),
    }
    tasks = {name: server.accepted(bearer(token)) for name, token in callers.items()}
    for name, token in callers.items():
        assert server.tasks(bearer(token)) == {tasks[name]}, name


def test_tokens_with_wrong_claims_are_refused(server: Agents, jose: Jose) -> None:
    for others, reason in (
        ({'exp': None}, 'no exp'),
        ({'exp': str(now() + 600)}, 'exp, nbf and iat have to be numbers'),
        ({'exp': now() - 60}, 'expired'),
        ({'nbf': now() + 600}, 'not valid yet'),
        ({'aud': 'another'}, 'another audience'),
        ({'aud': ['another']}, 'another audience'),
        ({'aud': []}, 'another audience'),
        ({'iss': ''}, 'issuer'),
        ({'sub': None}, 'no sub'),
        ({'sub': ''}, 'no sub'),
        ({'iss': 'https://id.example'}, 'a key of its own'),
    ):
        server.refused(bearer(jose.sign(claims(**others), KEY)), reason)


def test_tokens_with_another_key_or_algorithm_are_refused(server: Agents, library: Library, jose: Jose) -> None:
    server.refused(bearer(library.sign(claims(), secret(SECRET.upper()))), 'signature')
    server.refused(bearer(library.sign(claims(), ACME_KEY)), 'signature')
    server.refused(bearer(library.sign(claims(org_domain='other.example'), ACME_KEY)), 'signature')
    server.refused(bearer(library.sign(claims(), KEY, alg='HS384')), 'algorithm')
    server.refused(bearer(jose.unsecured(claims())), 'algorithm')


def test_end_users_see_only_their_own_tasks(server: Agents, library: Library) -> None:
    caller = bearer(library.sign(claims(sub='app'), KEY))
    alice = {**caller, 'X-End-User-Token': library.sign(claims(sub='alice'), KEY)}
    bob = {**caller, 'X-End-User-Token': library.sign(claims(sub='bob', org_domain='acme.example'), ACME_KEY)}
    server.refused(caller, 'X-End-User-Token', 'people')
    expired = library.sign(claims(exp=now() - 60), KEY)
    server.refused({**caller, 'X-End-User-Token': expired}, 'expired', 'people')
    task = server.accepted(alice, 'people')
    assert server.tasks(alice, 'people') == {task}
    assert server.tasks(bob, 'people') == set()
    # Another caller on behalf of the same person.
    other = bearer(library.sign(claims(sub='other app'), KEY))
    assert server.tasks({**alice, **other}, 'people') == set()


def test_tokens_of_the_program_are_verified_by_others(server: Agents) -> None:
    def token(*options: str) -> str:
        return server.command('token', '--sub', 'alice', *options)

    made = token('--aud', 'a2ad', '--iss', 'me', '--ttl', '5m', '--claim', 'roles=["a","b"]')
    seen = [
        PyJwt().verify(made, KEY, audience='a2ad', issuer='me'),
        Jose().verify(made, KEY, audience='a2ad', issuer='me'),
    ]
    for payload in seen:
        assert (payload['sub'], payload['aud'], payload['iss'], payload['roles']) == ('alice', 'a2ad', 'me', ['a', 'b'])
        assert 240 < payload['exp'] - now() <= 300
    task = server.accepted(bearer(made))
    assert server.tasks(bearer(token())) == {task}

    of_acme = token('--org', 'acme.example')
    for library in (PyJwt(), Jose()):
        assert library.verify(of_acme, ACME_KEY)['org_domain'] == 'acme.example'
    assert server.tasks(bearer(of_acme)) == set()
