"""curl over TLS: both versions of HTTP, with and without a client certificate, and certificates that are refused."""

import subprocess

from pathlib import Path

import pytest

from certificates import Authority, Pair
from conftest import Server, Start


def curl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ['curl', '--silent', '--show-error', '--noproxy', '*', '--max-time', '20', *arguments],
        capture_output=True,
        text=True,
        timeout=30,
    )


def send(server: Server, ca: Path, agent: str, *arguments: str) -> tuple[str, str]:
    """Sends a text; status and HTTP version, and the body."""
    form = '\n%{http_code} %{http_version}'
    done = curl(
        f'{server.url}/a2a/{agent}', '--cacert', str(ca), '-H', 'Content-Type: text/plain', '-d', 'hello', '-w', form,
        *arguments,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    body, _, status = done.stdout.rpartition('\n')
    return status, body


def certificate(pair: Pair) -> list[str]:
    return ['--cert', str(pair.cert), '--key', str(pair.key)]


@pytest.mark.parametrize('kind', ['ec', 'pkcs1', 'RSA', 'ED25519'])
def test_every_form_of_private_key(start: Start, authority: Authority, kind: str) -> None:
    server = start(authority.sign('server', kind=kind))
    assert send(server, authority.cert, 'open') == ('200 2', 'hello')


@pytest.mark.parametrize(('option', 'version'), [('--http1.1', '1.1'), ('--http2', '2')])
@pytest.mark.parametrize('tls', ['1.2', '1.3'])
def test_versions_of_http_with_and_without_certificate(
    start: Start, authority: Authority, option: str, version: str, tls: str
) -> None:
    server, ca = start(), authority.cert
    options = [option, f'--tlsv{tls}', '--tls-max', tls]
    assert send(server, ca, 'open', *options) == (f'200 {version}', 'hello')
    assert send(server, ca, 'closed', *options)[0] == f'401 {version}'
    alice = authority.sign('alice')
    assert send(server, ca, 'closed', *options, *certificate(alice)) == (f'200 {version}', 'hello')


def test_a_refusal_before_the_body_has_arrived_is_read(start: Start, authority: Authority) -> None:
    """The response to a call without a certificate does not wait for the body, and curl 7.88 does not accept a reset then."""
    server = start()
    for _ in range(50):
        assert send(server, authority.cert, 'closed', '--http2')[0] == '401 2'


def test_the_client_verifies_the_server(start: Start, authority: Authority, tmp_path: Path) -> None:
    server, other = start(), Authority(tmp_path, 'other')
    done = curl(f'{server.url}/healthz', '--cacert', str(other.cert))
    assert done.returncode == 60, done.stderr
    assert curl(f'{server.url}/healthz', '--cacert', str(authority.cert)).returncode == 0


@pytest.mark.parametrize('case', ['foreign', 'expired', 'self-signed'])
def test_a_certificate_that_is_not_valid_ends_the_handshake(
    start: Start, authority: Authority, tmp_path: Path, case: str
) -> None:
    server = start()
    pair = {
        'foreign': lambda: Authority(tmp_path, 'other').sign('mallory'),
        'expired': lambda: authority.sign('late', days=-1),
        'self-signed': lambda: Authority(tmp_path, 'myself').pair,
    }[case]()
    done = curl(f'{server.url}/healthz', '--cacert', str(authority.cert), *certificate(pair))
    # 35 and 56: the server has sent an alert during the handshake, or after the client has finished it.
    assert done.returncode in (35, 55, 56), (done.returncode, done.stderr, done.stdout)


def test_a_plain_request_gets_a_readable_answer(start: Start) -> None:
    server = start()
    done = curl(f'http://localhost:{server.port}/', '-w', '\n%{http_code}')
    assert done.stdout.endswith('\n400') and 'use https://' in done.stdout, done.stdout
