"""What a receiver verifies: signatures with the package standardwebhooks, tokens and credentials, and with PyJWT the
token that the server has signed."""

import base64
import hashlib
import time

from typing import Any

import grpc
import jwt
import pytest

from a2a.types import TaskPushNotificationConfig, a2a_pb2_grpc
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from calls import Json, PushServer
from receiver import Receiver


PLAIN = 'a token of at least 24 bytes: Grüße'
ENCODED = 'whsec_' + base64.b64encode(bytes(range(32))).decode()
SHORT = 'too short for a key'


def notified(receiver: Receiver, key: str | bytes) -> list[Json]:
    """Verifies every delivery of a task that has completed; the bodies."""
    receiver.wait_for_state('completed')
    return [Webhook(key).verify(delivery.body, delivery.headers) for delivery in receiver.deliveries]


@pytest.mark.parametrize('token', [None, SHORT])
@pytest.mark.parametrize('inline', [False, True])
def test_secret_that_the_server_makes(server: PushServer, receiver: Receiver, token: str | None, inline: bool) -> None:
    fields = {'token': token} if token else {}
    if inline:
        response = server.say('hello', agent='echo', push={'url': receiver.url, **fields})
        task = response.result['task']['id']
    else:
        task = server.ask()
        response = server.register(task, receiver.url, **fields)
        server.say('approve', task).result
    assert response.secret.startswith('whsec_')
    bodies = notified(receiver, response.secret)
    assert {body['task']['id'] for body in bodies} == {task}
    assert {delivery.headers.get('x-a2a-notification-token') for delivery in receiver.deliveries} == {token}
    # The bytes that were signed are those that were sent.
    last = receiver.deliveries[-1]
    with pytest.raises(WebhookVerificationError):
        Webhook(response.secret).verify(last.body + b' ', last.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(response.secret).verify(last.body, {**last.headers, 'webhook-id': 'another'})


@pytest.mark.parametrize('binding', ['rest', 'grpc'])
def test_secret_in_other_bindings(server: PushServer, receiver: Receiver, binding: str) -> None:
    task = server.ask()
    if binding == 'rest':
        path = f'/a2a/main/tasks/{task}/pushNotificationConfigs'
        secret = server.request(path, {'url': receiver.url}, {'A2A-Version': '1.0'}).secret
    else:
        with grpc.insecure_channel(server.url.removeprefix('http://')) as channel:
            create = a2a_pb2_grpc.A2AServiceStub(channel).CreateTaskPushNotificationConfig
            request = TaskPushNotificationConfig(task_id=task, url=receiver.url)
            _, call = create.with_call(request, metadata=[('a2a-version', '1.0')], timeout=10)
            secret = dict(call.initial_metadata())['a2ad-webhook-secret']
    server.say('approve', task).result
    notified(receiver, secret)


def test_secret_of_a_config_that_is_replaced(server: PushServer, receiver: Receiver) -> None:
    push = {'id': 'mine', 'url': receiver.url}
    first = server.say('jump', push=push)
    asked = receiver.wait_for_state('input-required')
    second = server.say('approve', first.result['task']['id'], push=push)
    completed = receiver.wait_for_state('completed')
    for secret, delivery in [(first.secret, asked), (second.secret, completed)]:
        Webhook(secret).verify(delivery.body, delivery.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(first.secret).verify(completed.body, completed.headers)


@pytest.mark.parametrize(('token', 'key'), [(ENCODED, ENCODED), (PLAIN, PLAIN.encode())], ids=['whsec', 'plain'])
@pytest.mark.parametrize('inline', [False, True])
def test_token_that_is_a_key(server: PushServer, receiver: Receiver, token: str, key: Any, inline: bool) -> None:
    if inline:
        response = server.say('hello', agent='echo', push={'url': receiver.url, 'token': token})
    else:
        task = server.ask()
        response = server.register(task, receiver.url, token=token)
        server.say('approve', task).result
    assert response.result and response.secret is None
    notified(receiver, key)
    for delivery in receiver.deliveries:
        # Python reads headers as Latin-1; these are bytes of UTF-8.
        assert delivery.headers['x-a2a-notification-token'].encode('latin-1').decode() == token


@pytest.mark.parametrize(
    ('authentication', 'header', 'value'),
    [
        ({'scheme': 'Bearer', 'credentials': 'some.bearer-token'}, 'authorization', 'Bearer some.bearer-token'),
        ({'scheme': 'Basic', 'credentials': 'user:pass word'}, 'authorization', 'Basic dXNlcjpwYXNzIHdvcmQ='),
        ({'scheme': 'Basic', 'credentials': 'dXNlcjpwYXNz'}, 'authorization', 'Basic dXNlcjpwYXNz'),
        ({'scheme': 'apiKey', 'credentials': 'the key'}, 'x-api-key', 'the key'),
    ],
    ids=['bearer', 'basic', 'basic in base64', 'apiKey'],
)
def test_credentials_are_sent(
    server: PushServer, receiver: Receiver, authentication: Json, header: str, value: str
) -> None:
    response = server.say('hello', agent='echo', push={'url': receiver.url, 'authentication': authentication})
    notified(receiver, response.secret)
    for delivery in receiver.deliveries:
        assert delivery.headers[header] == value
        assert len({'authorization', 'x-api-key'} & delivery.headers.keys()) == 1
        assert delivery.headers['content-type'] == 'application/a2a+json'


def test_token_of_the_server_names_the_body(server: PushServer, receiver: Receiver) -> None:
    task = 'a task of the draft'
    message = {'role': 'user', 'parts': [{'type': 'text', 'text': 'jump'}]}
    server.call('tasks/send', {'id': task, 'message': message}, version='').result
    push = {'url': receiver.url, 'authentication': {'schemes': ['jwt']}}
    response = server.call('tasks/pushNotification/set', {'id': task, 'pushNotificationConfig': push}, version='')
    assert response.result == {'id': task, 'pushNotificationConfig': push}
    message['parts'][0]['text'] = 'approve'
    server.call('tasks/send', {'id': task, 'message': message}, version='').result

    assert [body['id'] for body in notified(receiver, response.secret)][-1] == task
    keys = jwt.PyJWKClient(f'{server.url}/.well-known/jwks.json')
    for delivery in receiver.deliveries:
        scheme, _, token = delivery.headers['authorization'].partition(' ')
        key = keys.get_signing_key_from_jwt(token)
        claims = jwt.decode(token, key, ['RS256'], options={'require': ['iat', 'request_body_sha256']})
        assert scheme == 'Bearer'
        assert claims['request_body_sha256'] == hashlib.sha256(delivery.body).hexdigest()
        assert abs(time.time() - claims['iat']) < 60


@pytest.mark.parametrize(
    ('field', 'fields'),
    [
        ('token', {'token': 'line\nbreak'}),
        ('authentication.credentials', {'authentication': {'scheme': 'Bearer', 'credentials': 'a\r\nb'}}),
        ('authentication.scheme', {'authentication': {'scheme': 'Be\narer', 'credentials': 'a'}}),
    ],
)
def test_what_no_header_can_have_is_refused(server: PushServer, receiver: Receiver, field: str, fields: dict) -> None:
    response = server.call('CreateTaskPushNotificationConfig', {'taskId': server.ask(), 'url': receiver.url, **fields})
    assert response.body['error']['code'] == -32602
    assert field in response.body['error']['message']


def test_path_of_a_url_is_percent_encoded(server: PushServer, receiver: Receiver) -> None:
    server.register(server.ask(), f'{receiver.origin}/grüße?q=ß')
    assert receiver.wait_for_count(1)[0].path == '/gr%C3%BC%C3%9Fe?q=%C3%9F'
