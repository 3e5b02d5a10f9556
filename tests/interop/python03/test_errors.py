"""Refusals arrive as errors of the protocol, in the words its schema gives them."""

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
from talk import Refusal, ask, cancel, get, listen, message, refused, say, watch


UNKNOWN = Task(
    id='task_that_nobody_ever_made', context_id='c', status=TaskStatus(state=TaskState.unknown)
)


async def say_more(client: Client, task: Task) -> None:
    request = say('more', task)
    request.context_id = None
    await ask(client, request)


@pytest.mark.parametrize('operation', [get, cancel, say_more])
async def test_an_unknown_task_is_not_found(
    connect: Connect, operation: Callable[[Client, Task], Awaitable[object]]
) -> None:
    client = await connect('echo', streaming=False)
    with refused(Refusal.NOT_FOUND):
        await operation(client, UNKNOWN)


# Over HTTP this SDK reads only streams where it asked for one, so it cannot tell which refusal it got.
async def test_a_refused_stream_is_an_error_to_the_client(connect: Connect) -> None:
    client = await connect('echo')
    for stream in (watch(client, UNKNOWN), client.send_message(say('more', UNKNOWN))):
        with pytest.raises((A2AClientError, grpc.aio.AioRpcError)):
            await listen(stream)


async def test_a_task_is_unknown_to_other_agents(connect: Connect) -> None:
    task = await ask(await connect('echo', streaming=False), say('mine'))
    with refused(Refusal.NOT_FOUND):
        await get(await connect('approver'), task)


async def test_a_finished_task_takes_no_message(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('done at once'))
    with refused(Refusal.UNSUPPORTED):
        await say_more(client, task)


async def test_a_message_without_parts_is_refused(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    with refused(Refusal.INVALID):
        await ask(client, message([]))


async def test_a_negative_history_length_is_refused(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('remember'))
    with refused(Refusal.INVALID):
        await client.get_task(TaskQueryParams(id=task.id, history_length=-1))


async def test_push_is_refused_as_unsupported(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('no push'))
    config = PushNotificationConfig(url='https://example.com/hook')
    with refused(Refusal.NO_PUSH):
        await client.set_task_callback(
            TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
        )
    with refused(Refusal.NO_PUSH):
        await client.get_task_callback(GetTaskPushNotificationConfigParams(id=task.id))


ENVELOPES = [
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


@pytest.mark.parametrize(('body', 'code'), ENVELOPES)
async def test_a_broken_request_gets_an_error_the_models_know(
    url: str, http: httpx.AsyncClient, body: str, code: int
) -> None:
    answer = await http.post(f'{url}/a2a/echo', content=body, headers={'Content-Type': 'application/json'})
    assert answer.status_code == 200
    error = A2AError.model_validate(answer.json()['error']).root
    assert (error.code, error.message) == (code, type(error)().message)
