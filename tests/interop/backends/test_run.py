"""Skills over plain HTTP: their OpenAPI document, read by a validator that other people wrote, and calls of what it describes."""

import json
import urllib.parse
import urllib.request

from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from helpers import toml_list


def test_document_is_valid_and_its_operations_can_be_called(start, everything, time_server):
    server = start(
        f'[mcp.everything]\ncommand = {toml_list([*everything, "stdio"])}\n'
        f'[mcp.clock]\ncommand = {toml_list([time_server, "--local-timezone", "UTC"])}\n'
    )
    document = server.get('/openapi.json')
    validate(document)
    operations = {path['post']['operationId']: (name, path['post']) for name, path in document['paths'].items()}
    assert {'echo', 'get-sum', 'get-structured-content', 'get_current_time'} <= operations.keys()

    registry = Registry().with_resource('urn:document', DRAFT202012.create_resource(document))
    for skill, arguments in [
        ('get_current_time', {'timezone': 'Asia/Tokyo'}),
        ('get-structured-content', {'location': 'Chicago'}),
    ]:
        path, operation = operations[skill]
        requests = operation['requestBody']['content']['application/json']['schema']
        responses = operation['responses']['200'].get('content', {}).get('application/json', {}).get('schema', {})
        answer = server.post(urllib.parse.unquote(path), arguments)
        for schema, value in [(requests, arguments), (responses, answer)]:
            resolved = json.loads(json.dumps(schema).replace('"#/', '"urn:document#/'))
            OAS31Validator(resolved, registry=registry).validate(value)


def test_task_of_a_call_is_at_its_location(start, time_server):
    server = start(f'[mcp.clock]\ncommand = {toml_list([time_server])}\n')
    request = urllib.request.Request(
        server.url + '/run/get_current_time?wait=20',
        b'{"timezone": "UTC"}',
        {'Content-Type': 'application/json'},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        location = response.headers['Location']
    task = server.get(location)
    assert task['status']['state'] == 'TASK_STATE_COMPLETED'
    assert task['metadata'] == {'a2ad': {'origin': 'run'}}
