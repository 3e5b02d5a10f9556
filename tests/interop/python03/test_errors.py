"""Errors arrive as errors of the protocol, with the messages of its schema."""

from collections.abc import Awaitable, Callable

import grpc
import httpx
import pytest

from a2a.client import Client
from a2a.client.errors import A2AClientError
from a2a.types import (
    A2AError,
    GetTaskPushNotificationConfigParams,
    PushNotificationConfig,
    Task,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TaskStatus,
)

from conftest import Connect
from helpers import ProtocolError, cancel, collect, expect_error, get, message, send, subscribe, user_message


UNKNOWN = Task(
    id='task_that_nobody_ever_made', context_id='c', status=TaskStatus(state=TaskState.unknown)
)


async def send_more(client: Client, task: Task) -> None:
    request = user_message('more', task)
    request.context_id = None
    await send(client, request)


@pytest.mark.parametrize('operation', [get, cancel, send_more])
async def test_unknown_task_is_not_found(
    connect: Connect, operation: Callable[[Client, Task], Awaitable[object]]
) -> None:
    client = await connect('echo', streaming=False)
    with expect_error(ProtocolError.NOT_FOUND):
        await operation(client, UNKNOWN)


# Over HTTP, this SDK does not parse the error response to a streaming request, so the kind of error is unknown.
async def test_rejected_stream_raises_an_error(connect: Connect) -> None:
    client = await connect('echo')
    for stream in (subscribe(client, UNKNOWN), client.send_message(user_message('more', UNKNOWN))):
        with pytest.raises((A2AClientError, grpc.aio.AioRpcError)):
            await collect(stream)


async def test_task_of_another_agent_is_not_found(connect: Connect) -> None:
    task = await send(await connect('echo', streaming=False), user_message('mine'))
    with expect_error(ProtocolError.NOT_FOUND):
        await get(await connect('approver'), task)


async def test_finished_task_rejects_messages(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('done at once'))
    with expect_error(ProtocolError.UNSUPPORTED):
        await send_more(client, task)


async def test_message_without_parts_is_rejected(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    with expect_error(ProtocolError.INVALID):
        await send(client, message([]))


async def test_negative_history_length_is_rejected(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('remember'))
    with expect_error(ProtocolError.INVALID):
        await client.get_task(TaskQueryParams(id=task.id, history_length=-1))


async def test_push_config_is_rejected_as_unsupported(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('no push'))
    config = PushNotificationConfig(url='https://example.com/hook')
    with expect_error(ProtocolError.NO_PUSH):
        await client.set_task_callback(
            TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
        )
    with expect_error(ProtocolError.NO_PUSH):
        await client.get_task_callback(GetTaskPushNotificationConfigParams(id=task.id))


MALFORMED = [
    ('{"jsonrpc": "2.0", "id": 1, "method"', -32700),
    ('[]', -32600),
    ('{"jsonrpc": "1.0", "id": 1, "method": "message/send", "params": {}}', -32600),
    ('{"jsonrpc": "2.0", "id": 1}', -32600),
    ('{"jsonrpc": "2.0", "id": {}, "method": "message/send", "params": {}}', -32600),
    ('{"jsonrpc": "2.0", "id": 1, "method": "message/unheard"}', -32601),
    ('{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}', -32602),
    ('{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": []}', -32602),
    ('{"jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard"}', -32004),
]


@pytest.mark.parametrize(('body', 'code'), MALFORMED)
async def test_malformed_request_gets_an_error_of_the_schema(
    url: str, http: httpx.AsyncClient, body: str, code: int
) -> None:
    response = await http.post(f'{url}/a2a/echo', content=body, headers={'Content-Type': 'application/json'})
    assert response.status_code == 200
    error = A2AError.model_validate(response.json()['error']).root
    assert (error.code, error.message) == (code, type(error)().message)
