"""A process of Prometheus that scrapes one server."""

import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

from pathlib import Path
from typing import Any

from helpers import eventually


CONFIG = """
global: {{ scrape_interval: 500ms, scrape_timeout: 400ms }}
scrape_configs:
  - job_name: a2ad
    static_configs: [{{ targets: ['{target}'] }}]
"""


class Prometheus:
    """Prometheus with its own data directory, on a free port."""

    def __init__(self, target: str, directory: Path) -> None:
        (directory / 'prometheus.yml').write_text(CONFIG.format(target=target))
        self.process = subprocess.Popen(
            [
                os.environ['PROMETHEUS'],
                '--config.file=prometheus.yml',
                f'--storage.tsdb.path={directory / "data"}',
                '--web.listen-address=127.0.0.1:0',
            ],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self.url = self._address()
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()
        eventually(self._is_ready)

    def _address(self) -> str:
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', line)
            if found:
                return f'http://{found[1]}'
        raise AssertionError(f'Prometheus did not start:\n{"".join(self.log)}')

    def _is_ready(self) -> bool | None:
        """It answers 503 until it has read its data directory."""
        try:
            with urllib.request.urlopen(f'{self.url}/-/ready', timeout=10):
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return None

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of a PromQL query."""
        query = urllib.parse.urlencode({'query': expression})
        with urllib.request.urlopen(f'{self.url}/api/v1/query?{query}', timeout=10) as response:
            answer = json.load(response)
        assert answer['status'] == 'success', answer
        return answer['data']['result']

    def value(self, expression: str) -> float | None:
        """The value of a query with one result; `None` while there is none."""
        result = self.query(expression)
        return float(result[0]['value'][1]) if result else None

    def reaches(self, expression: str, expected: float) -> None:
        """Waits until a query has this value."""
        eventually(lambda: True if self.value(expression) == expected else None)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
