"""What the server negotiates, as `openssl s_client` sees it."""

import re
import subprocess

import pytest

from conftest import Server, Start


def handshake(server: Server, *options: str) -> tuple[bool, str]:
    """Whether a handshake succeeds, and what openssl prints."""
    done = subprocess.run(
        ['openssl', 's_client', '-connect', f'127.0.0.1:{server.port}', '-servername', 'localhost', *options],
        input='',
        capture_output=True,
        text=True,
        timeout=30,
    )
    output = done.stdout + done.stderr
    return 'Cipher is (NONE)' not in output and done.returncode == 0, output


@pytest.mark.parametrize('version', ['tls1', 'tls1_1'])
def test_old_versions_are_refused(start: Start, version: str) -> None:
    # Without a lower security level, openssl itself would refuse them.
    succeeded, output = handshake(start(), f'-{version}', '-cipher', 'ALL:@SECLEVEL=0')
    assert not succeeded, output
    # It was the server that refused.
    assert 'SSL alert number' in output, output


def test_current_versions_have_strong_ciphers_and_alpn(start: Start) -> None:
    server = start()
    for version, name in [('tls1_2', 'TLSv1.2'), ('tls1_3', 'TLSv1.3')]:
        succeeded, output = handshake(server, f'-{version}', '-alpn', 'h2,http/1.1')
        assert succeeded and name in output, output
        assert re.search(r'Cipher is (TLS_|ECDHE-)\S*(GCM|CHACHA20)', output), output
        assert 'ALPN protocol: h2' in output, output
    assert 'ALPN protocol: http/1.1' in handshake(server, '-alpn', 'http/1.1')[1]
    # Clients without it speak HTTP/1.1.
    assert handshake(server)[0]
    assert not handshake(server, '-alpn', 'spdy/3')[0]


@pytest.mark.parametrize(
    'ciphers', ['NULL', 'RC4', '3DES', 'CBC', 'SHA1', 'kRSA', 'aNULL', 'DHE+AESGCM', 'ECDHE+AES+SHA256']
)
def test_weak_ciphers_are_refused(start: Start, ciphers: str) -> None:
    chosen = f'{ciphers}:!AESGCM:!CHACHA20:@SECLEVEL=0' if ciphers != 'DHE+AESGCM' else f'{ciphers}:@SECLEVEL=0'
    succeeded, output = handshake(start(), '-tls1_2', '-cipher', chosen)
    assert not succeeded, output
