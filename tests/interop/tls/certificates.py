"""Certificates that are made by the command `openssl`."""

import subprocess

from dataclasses import dataclass
from pathlib import Path


def openssl(*arguments: str) -> str:
    done = subprocess.run(['openssl', *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    cert: Path
    key: Path


class Authority:
    """An authority that signs certificates; all files are in one directory."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory, self.name = directory, name
        self.pair = Pair(directory / f'{name}.pem', directory / f'{name}.key')
        self._key(self.pair.key, 'ec')
        extensions = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign']
        openssl(
            'req', '-x509', '-new', '-key', str(self.pair.key), '-out', str(self.pair.cert), '-days', '30',
            '-subj', f'/O=Example/CN={name}', *extensions,
        )  # fmt: skip

    @property
    def cert(self) -> Path:
        return self.pair.cert

    def sign(
        self,
        name: str,
        names: str = 'DNS:localhost,IP:127.0.0.1',
        kind: str = 'ec',
        days: int = 30,
    ) -> Pair:
        """Signs a certificate with these alternative names; `days` may be negative."""
        pair = Pair(self.directory / f'{name}.pem', self.directory / f'{name}.key')
        request, extensions = pair.cert.with_suffix('.csr'), pair.cert.with_suffix('.ext')
        self._key(pair.key, kind)
        openssl('req', '-new', '-key', str(pair.key), '-out', str(request), '-subj', f'/O=Example/CN={name}')
        extensions.write_text(f'subjectAltName={names}\n')
        openssl(
            'x509', '-req', '-in', str(request), '-CA', str(self.pair.cert), '-CAkey', str(self.pair.key),
            '-CAcreateserial', '-days', str(days), '-extfile', str(extensions), '-out', str(pair.cert),
        )  # fmt: skip
        return pair

    @staticmethod
    def _key(path: Path, kind: str) -> None:
        """A private key in one of the forms that PEM has for it."""
        if kind == 'ec':
            openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', str(path))
        elif kind == 'pkcs1':
            openssl('genrsa', '-traditional', '-out', str(path), '2048')
        else:
            openssl('genpkey', '-algorithm', kind, '-out', str(path))
