"""URLs that must not be called: refused when they are registered, and again when their names are resolved."""

import os
import shlex
import subprocess

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from a2a.helpers import new_text_message
from a2a.types import SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig, a2a_pb2_grpc
from google.rpc import error_details_pb2, status_pb2
from helpers import eventually

from calls import LOOPBACK, Json, PushServer, config
from conftest import Receive, Start
from receiver import Receiver


BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'
INVALID_PARAMS = -32602


@pytest.fixture
def guarded(start: Start) -> PushServer:
    """A server that may call `http` URLs, but none of this machine."""
    return start(config(allow='[]'))


@pytest.fixture(params=['metadata', 'loopback', 'number', 'localhost', 'file', 'password'])
def url(request: pytest.FixtureRequest, receiver: Receiver) -> Iterator[str]:
    yield {
        'metadata': 'http://169.254.169.254/',
        'loopback': receiver.url,
        'number': f'http://2130706433:{receiver.port}/',
        'localhost': f'http://localhost:{receiver.port}/hook',
        'file': 'file:///etc/passwd',
        'password': 'https://user:pw@example.com/',
    }[request.param]
    assert receiver.connections == 0


def violations(details: list[Json]) -> list[str]:
    """The fields of the request that are not valid."""
    (bad_request,) = [detail for detail in details if detail['@type'] == BAD_REQUEST]
    return [violation['field'] for violation in bad_request['fieldViolations']]


def test_json_rpc(guarded: PushServer, url: str) -> None:
    task = guarded.ask()
    error = guarded.call('CreateTaskPushNotificationConfig', {'taskId': task, 'url': url}).body['error']
    assert (error['code'], violations(error['data'])) == (INVALID_PARAMS, ['url']), error
    inline = guarded.say('hello', push={'url': url}).body['error']
    assert inline['code'] == INVALID_PARAMS, inline
    assert violations(inline['data'])[0].endswith('url'), inline
    # A send that is refused makes no task.
    assert len(guarded.call('ListTasks', {}).result['tasks']) == 1

    old = {'taskId': task, 'pushNotificationConfig': {'url': url}}
    for version, params in [('0.3', old), ('', {'id': task, **old})]:
        method = 'tasks/pushNotificationConfig/set' if version else 'tasks/pushNotification/set'
        error = guarded.call(method, params, version=version).body['error']
        assert error['code'] == INVALID_PARAMS, error
        assert [each['field'].rpartition('.')[2] for each in error['data']['errors']] == ['url'], error
    assert guarded.call('ListTaskPushNotificationConfigs', {'taskId': task}).result.get('configs', []) == []


def test_rest(guarded: PushServer, url: str) -> None:
    path = f'/a2a/main/tasks/{guarded.ask()}/pushNotificationConfigs'
    response = guarded.request(path, {'url': url}, {'A2A-Version': '1.0'})
    assert response.status == 400, response.body
    assert violations(response.body['error']['details']) == ['url']


def test_grpc(guarded: PushServer, url: str) -> None:
    task = guarded.ask()
    with grpc.insecure_channel(guarded.url.removeprefix('http://')) as channel:
        stub = a2a_pb2_grpc.A2AServiceStub(channel)
        push = TaskPushNotificationConfig(task_id=task, url=url)
        inline = SendMessageRequest(
            message=new_text_message('hello'),
            configuration=SendMessageConfiguration(task_push_notification_config=push),
        )
        for call, request in [(stub.CreateTaskPushNotificationConfig, push), (stub.SendMessage, inline)]:
            with pytest.raises(grpc.RpcError) as caught:
                call(request, metadata=[('a2a-version', '1.0')], timeout=10)
            error = caught.value
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            details = dict(error.trailing_metadata())['grpc-status-details-bin']
            bad_request = error_details_pb2.BadRequest()
            assert any(each.Unpack(bad_request) for each in status_pb2.Status.FromString(details).details)
            assert [each.field.endswith('url') for each in bad_request.field_violations] == [True]


def test_name_of_this_machine_is_not_called(
    start: Start, receive: Receive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public name is accepted, as nothing is resolved then; it is the resolved address that is refused."""
    # A port that is allowed for public names, at an address that nothing else uses.
    receiver = receive(host='127.71.9.3', port=8443)
    program = with_hosts(tmp_path, '127.71.9.3 receiver.example\n')
    monkeypatch.setenv('A2AD_PROGRAM', str(program))
    url = f'http://receiver.example:{receiver.port}/hook'
    server = start(config(allow='[]'))
    task = server.ask()
    server.register(task, url)
    ((_, of, state, *rest),) = eventually(server.dead_letters)
    assert (of, state) == (task, 'dead') and 'not allowed' in ' '.join(rest)
    assert receiver.connections == 0
    server.kill()

    # The name does lead there.
    server = start(config(allow=LOOPBACK))
    task = server.ask()
    server.register(task, url)
    assert receiver.wait_for_count(1)[0].json['task']['id'] == task


def with_hosts(directory: Path, hosts: str) -> Path:
    """A script that runs the program under test with this file of hosts, in a mount namespace."""
    file, script = directory / 'hosts', directory / 'a2ad-with-hosts'
    file.write_text(hosts)
    for options in (['--mount'], ['--user', '--map-root-user', '--mount']):
        mount = ['unshare', *options, 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', str(file)]
        if subprocess.run([*mount, 'true'], capture_output=True, timeout=10).returncode == 0:
            command = shlex.join([*mount, os.environ['A2AD_PROGRAM']])
            script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            script.chmod(0o700)
            return script
    pytest.skip('there is no mount namespace on this machine')
