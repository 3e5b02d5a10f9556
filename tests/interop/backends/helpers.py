"""A server process of the program under test, and calls of its agents in every generation, with the standard library."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
import uuid

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


Json = dict[str, Any]


class Server:
    """One process; `url` is its address."""

    def __init__(self, config: str, directory: Path, env: dict[str, str]) -> None:
        (directory / 'a2ad.toml').write_text(config)
        command = [os.environ['A2AD_PROGRAM'], '--listen', '127.0.0.1:0', '--config', 'a2ad.toml']
        self.directory = directory
        environment = {name: value for name, value in os.environ.items() if not name.startswith('A2AD_')}
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env={**environment, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self.url = self._address()
        threading.Thread(target=self._read_log, daemon=True).start()

    def _address(self) -> str:
        for line in self.process.stderr:
            self.log.append(line)
            # Other lines may name the addresses of backends.
            found = re.search(r'"a2ad serves".*?(http://127\.0\.0\.1:\d+)', line)
            if found:
                return found[1]
        raise AssertionError(f'the server did not start:\n{"".join(self.log)}')

    def _read_log(self) -> None:
        self.log.extend(self.process.stderr)

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """Ends it at once; it has no chance to clean up."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Shuts it down gracefully; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)

    def get(self, path: str) -> Json:
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def post(self, path: str, body: Json, headers: dict[str, str] | None = None) -> Json:
        with self._open(path, body, headers or {}) as response:
            return json.load(response)

    def _open(self, path: str, body: Json, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(
            self.url + path,
            json.dumps(body).encode(),
            {'Content-Type': 'application/json', **headers},
        )
        return urllib.request.urlopen(request, timeout=60)

    def rpc(self, method: str, params: Json, agent: str = 'main') -> Json:
        """A call of A2A 1.0 over JSON-RPC; the result."""
        body = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}
        answer = self.post(f'/a2a/{agent}', body, {'A2A-Version': '1.0'})
        assert 'result' in answer, answer
        return answer['result']

    def send(self, skill: str, *parts: Json, agent: str = 'main', wait: bool = True, **fields: Any) -> Json:
        """Sends a message to a skill; the task."""
        params = send_params(skill, parts, wait, fields)
        result = self.rpc('SendMessage', params, agent)
        return result['task']

    def post_answer(self, part: Json, task: str) -> None:
        """Sends a message to a task that may take no more messages."""
        body = {'jsonrpc': '2.0', 'id': 1, 'method': 'SendMessage', 'params': send_params('', (part,), True, {'taskId': task})}
        self.post('/a2a/main', body, {'A2A-Version': '1.0'})

    def stream(self, skill: str, *parts: Json, agent: str = 'main', **fields: Any) -> Iterator[Json]:
        """Sends a message to a skill; the events as they arrive."""
        params = send_params(skill, parts, True, fields)
        body = {'jsonrpc': '2.0', 'id': 1, 'method': 'SendStreamingMessage', 'params': params}
        with self._open(f'/a2a/{agent}', body, {'A2A-Version': '1.0'}) as response:
            for line in response:
                if line.startswith(b'data:'):
                    yield json.loads(line[5:])['result']

    def task(self, task: str, agent: str = 'main') -> Json:
        return self.rpc('GetTask', {'id': task}, agent)

    def wait(self, task: str, *states: str, agent: str = 'main') -> Json:
        """Waits until a task has one of these states."""
        return eventually(lambda: found if state(found := self.task(task, agent)) in states else None)


def send_params(skill: str, parts: tuple[Json, ...], wait: bool, fields: Json) -> Json:
    message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': list(parts), **fields}
    return {
        'message': message,
        'configuration': {'returnImmediately': not wait},
        'metadata': {'skillId': skill} if skill else {},
    }


def text(content: str) -> Json:
    return {'text': content}


def data(content: Any) -> Json:
    return {'data': content}


def state(task: Json) -> str:
    return task['status']['state'].removeprefix('TASK_STATE_').lower()


def status_text(task: Json) -> str:
    parts = task['status'].get('message', {}).get('parts', [])
    return ' '.join(part['text'] for part in parts if 'text' in part)


def result(task: Json) -> list[Json]:
    """The parts of the only artifact."""
    assert state(task) == 'completed', task['status']
    (artifact,) = task['artifacts']
    return artifact['parts']


def eventually(check: Callable[[], Any], limit: float = 30) -> Any:
    """Repeats a check until it returns something."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = check()
        if found is not None:
            return found
        time.sleep(0.05)
    raise AssertionError('the time limit has passed')


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have started."""
    children: dict[int, list[int]] = {}
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / 'stat').read_text().rpartition(')')[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def command_line(pid: int) -> str:
    try:
        return Path(f'/proc/{pid}/cmdline').read_bytes().replace(b'\0', b' ').decode()
    except OSError:
        return ''


def toml_list(values: list[str]) -> str:
    return json.dumps(values)


