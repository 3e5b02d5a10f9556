"""An agent as a client of the draft sees it: requests made by the models of `a2a-json-rpc`, answers held against the
JSON schema of the draft that the package carries.

The package's own models of whole answers lost their references when they were generated (a status may have no message
there), so those are judged by the schema and only the pieces by the models.
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

SENT = [spec.SendTaskRequest, spec.SendTaskStreamingRequest, spec.GetTaskRequest, spec.CancelTaskRequest]
SENT += [spec.TaskResubscriptionRequest, spec.SetTaskPushNotificationRequest, spec.GetTaskPushNotificationRequest]
REQUESTS = {get_args(model.model_fields['method'].annotation)[0]: model for model in SENT}
ANSWERS = {
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

_numbers = count(1)


def conforms(value: object, definition: str) -> None:
    """Holds a value against one definition of the draft's schema."""
    schema = {'$ref': f'#/$defs/{definition}', '$defs': SCHEMA['$defs']}
    Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER).validate(value)


def error_of(answer: dict[str, Any]) -> int:
    """The code of an error that the draft's models know, words and data included."""
    error = answer['error']
    ERRORS[error['code']].model_validate(error)
    conforms(error, ERRORS[error['code']].__name__)
    return error['code']


def say(text: str, task: str | None = None, **more: object) -> dict[str, Any]:
    """The parameters of a text, to a task of the caller's own naming."""
    message = {'role': 'user', 'parts': [{'type': 'text', 'text': text}]}
    return {'id': task or f'mine-{uuid4()}', 'message': message, **more}


def texts(task: dict[str, Any]) -> list[str]:
    """The text of each artifact, however it was cut into parts."""
    return [''.join(part['text'] for part in artifact['parts']) for artifact in task.get('artifacts', [])]


class Agent:
    """One agent at one address."""

    def __init__(self, http: httpx.Client, url: str) -> None:
        self.http, self.url = http, url

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Sends a request that the models accept; the whole answer, which conforms to the schema."""
        request = _request(method, params)
        response = self.http.post(self.url, json=request)
        assert response.status_code == 200
        answer = response.json()
        conforms(answer, ANSWERS[method])
        assert (answer['jsonrpc'], answer['id']) == ('2.0', request['id'])
        assert ('result' in answer) != ('error' in answer)
        return answer

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """The task a call answers with."""
        task = self.call(method, **params)['result']
        conforms(task, 'Task')
        assert task['sessionId']
        for artifact in task.get('artifacts', []):
            spec.Artifact.model_validate(artifact)
        return task

    def follow(self, method: str, **params: object) -> Iterator[dict[str, Any]]:
        """The events of a stream, each of which conforms to the schema; the last one, and no other, is final."""
        request = _request(method, params)
        over = False
        with self.http.stream('POST', self.url, json=request) as response:
            assert response.headers['content-type'].startswith('text/event-stream')
            for line in response.iter_lines():
                if not line.startswith('data:'):
                    continue
                assert not over, 'an event after the final one'
                frame = json.loads(line.removeprefix('data:'))
                conforms(frame, ANSWERS[method])
                assert frame['id'] == request['id']
                event = frame['result']
                assert event['id'] == params['id']
                _known(event)
                over = event.get('final', False)
                yield event
        assert over, 'the stream ended without a final event'


def _known(event: dict[str, Any]) -> None:
    """An event is a status or an artifact, and says at once which."""
    if 'artifact' in event:
        conforms(event, 'TaskArtifactUpdateEvent')
        spec.TaskArtifactUpdateEvent.model_validate(event)
        assert 'status' not in event
    else:
        conforms(event, 'TaskStatusUpdateEvent')
        assert isinstance(event['final'], bool)


def _request(method: str, params: dict[str, object]) -> dict[str, Any]:
    request = REQUESTS[method](method=method, id=next(_numbers), params=params)
    made = request.model_dump(mode='json', by_alias=True, exclude_none=True)
    conforms(made, REQUESTS[method].__name__)
    return made
