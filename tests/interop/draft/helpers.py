"""A client of the first draft: requests are built with the models of `a2a-json-rpc`, and responses are validated with
the JSON schema of the draft that the package contains.

The package's models of complete responses are not usable, because references were lost when they were generated (a
status has no message, for example). So complete responses are validated only with the schema, and their parts also
with the models.
"""

import json

from collections.abc import Iterator
from importlib.resources import files
from itertools import count
from typing import Any, get_args
from uuid import uuid4

import a2a_json_rpc
import httpx

from a2a_json_rpc import spec
from jsonschema import Draft7Validator


SCHEMA = json.loads(files(a2a_json_rpc).joinpath('a2a_spec.json').read_text())

MODELS = [spec.SendTaskRequest, spec.SendTaskStreamingRequest, spec.GetTaskRequest, spec.CancelTaskRequest]
MODELS += [spec.TaskResubscriptionRequest, spec.SetTaskPushNotificationRequest, spec.GetTaskPushNotificationRequest]
REQUESTS = {get_args(model.model_fields['method'].annotation)[0]: model for model in MODELS}
RESPONSES = {
    'tasks/send': 'SendTaskResponse',
    'tasks/sendSubscribe': 'SendTaskStreamingResponse',
    'tasks/resubscribe': 'SendTaskStreamingResponse',
    'tasks/get': 'GetTaskResponse',
    'tasks/cancel': 'CancelTaskResponse',
    'tasks/pushNotification/set': 'SetTaskPushNotificationResponse',
    'tasks/pushNotification/get': 'GetTaskPushNotificationResponse',
}
ERRORS = {
    -32700: spec.JSONParseError,
    -32600: spec.InvalidRequestError,
    -32601: spec.MethodNotFoundError,
    -32602: spec.InvalidParamsError,
    -32001: spec.TaskNotFoundError,
    -32002: spec.TaskNotCancelableError,
    -32003: spec.PushNotificationNotSupportedError,
    -32004: spec.UnsupportedOperationError,
}

_request_ids = count(1)


def assert_conforms(value: object, definition: str) -> None:
    """Validates a value with one definition of the draft's schema."""
    schema = {'$ref': f'#/$defs/{definition}', '$defs': SCHEMA['$defs']}
    Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER).validate(value)


def error_code(response: dict[str, Any]) -> int:
    """The code of an error response; the error must match the draft's model of it, message and data included."""
    error = response['error']
    ERRORS[error['code']].model_validate(error)
    assert_conforms(error, ERRORS[error['code']].__name__)
    return error['code']


def send_params(text: str, task: str | None = None, **more: object) -> dict[str, Any]:
    """The parameters that send a text. In the draft the client chooses the task id."""
    message = {'role': 'user', 'parts': [{'type': 'text', 'text': text}]}
    return {'id': task or f'mine-{uuid4()}', 'message': message, **more}


def texts(task: dict[str, Any]) -> list[str]:
    """The text of each artifact, its parts joined."""
    return [''.join(part['text'] for part in artifact['parts']) for artifact in task.get('artifacts', [])]


class Agent:
    """The agent at one URL."""

    def __init__(self, http: httpx.Client, url: str) -> None:
        self.http, self.url = http, url

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Sends a request and returns the complete response; both must conform to the schema."""
        request = _request(method, params)
        http_response = self.http.post(self.url, json=request)
        assert http_response.status_code == 200
        response = http_response.json()
        assert_conforms(response, RESPONSES[method])
        assert (response['jsonrpc'], response['id']) == ('2.0', request['id'])
        assert ('result' in response) != ('error' in response)
        return response

    def request_task(self, method: str, **params: object) -> dict[str, Any]:
        """Calls a method whose result is a task, and returns the task."""
        task = self.call(method, **params)['result']
        assert_conforms(task, 'Task')
        assert task['sessionId']
        for artifact in task.get('artifacts', []):
            spec.Artifact.model_validate(artifact)
        return task

    def stream(self, method: str, **params: object) -> Iterator[dict[str, Any]]:
        """The events of a stream. Each must conform to the schema; the last one, and no other, must be final."""
        request = _request(method, params)
        ended = False
        with self.http.stream('POST', self.url, json=request) as response:
            assert response.headers['content-type'].startswith('text/event-stream')
            for line in response.iter_lines():
                if not line.startswith('data:'):
                    continue
                assert not ended, 'an event after the final one'
                frame = json.loads(line.removeprefix('data:'))
                assert_conforms(frame, RESPONSES[method])
                assert frame['id'] == request['id']
                event = frame['result']
                assert event['id'] == params['id']
                _check_event(event)
                ended = event.get('final', False)
                yield event
        assert ended, 'the stream ended without a final event'


def _check_event(event: dict[str, Any]) -> None:
    """Asserts that an event is either a status update or an artifact update."""
    if 'artifact' in event:
        assert_conforms(event, 'TaskArtifactUpdateEvent')
        spec.TaskArtifactUpdateEvent.model_validate(event)
        assert 'status' not in event
    else:
        assert_conforms(event, 'TaskStatusUpdateEvent')
        assert isinstance(event['final'], bool)


def _request(method: str, params: dict[str, object]) -> dict[str, Any]:
    request = REQUESTS[method](method=method, id=next(_request_ids), params=params)
    encoded = request.model_dump(mode='json', by_alias=True, exclude_none=True)
    assert_conforms(encoded, REQUESTS[method].__name__)
    return encoded
