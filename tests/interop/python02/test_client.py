"""The last SDK release of protocol 0.2: it reads the card from the old path and has only the JSON-RPC binding.

`A2AD_URL` is the URL of a running server, such as `http://127.0.0.1:4242`. Nothing here starts or stops it.
"""

import os

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest

from a2a.client import A2ACardResolver, A2AClient, create_text_message_object
from a2a.types import (
    CancelTaskRequest,
    GetTaskPushNotificationConfigParams,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    SendMessageRequest,
    SendStreamingMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
)


URL = os.environ['A2AD_URL'].rstrip('/')


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client with a timeout. It ignores proxy variables: the server is on this machine."""
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        yield client


async def connect(http: httpx.AsyncClient, agent: str) -> A2AClient:
    return await A2AClient.get_client_from_agent_card_url(http, f'{URL}/a2a/{agent}')


def send_params(text: str, task: Task | None = None, *, blocking: bool = True) -> MessageSendParams:
    message: Message = create_text_message_object(content=text)
    message.task_id = task.id if task else None
    message.context_id = task.context_id if task else None
    # In this version the output modes are required.
    configuration = MessageSendConfiguration(accepted_output_modes=['text/plain'], blocking=blocking)
    return MessageSendParams(message=message, configuration=configuration)


async def send(client: A2AClient, params: MessageSendParams) -> Task:
    response = await client.send_message(SendMessageRequest(id=str(uuid4()), params=params))
    assert isinstance(response.root.result, Task)
    return response.root.result


@pytest.mark.parametrize('base', ['', '/a2a/currency', '/a2a/echo', '/a2a/approver', '/a2a/slow-writer'])
async def test_card_is_at_the_old_path(http: httpx.AsyncClient, base: str) -> None:
    resolver = A2ACardResolver(http, f'{URL}{base}')
    assert resolver.agent_card_path == '.well-known/agent.json'
    card = await resolver.get_agent_card()
    assert card.url.startswith(f'{URL}{base}')
    assert card.preferred_transport in (None, 'JSONRPC')
    assert card.name and card.description and card.version and card.skills
    assert card.capabilities.streaming


async def test_sent_message_creates_a_task_that_can_be_read_back(http: httpx.AsyncClient) -> None:
    client = await connect(http, 'echo')
    task = await send(client, send_params('hello'))
    assert task.status.state == TaskState.completed
    assert task.artifacts[0].parts[0].root.text == 'hello'
    stored = await client.get_task(GetTaskRequest(id=1, params=TaskQueryParams(id=task.id)))
    assert stored.root.id == 1
    assert stored.root.result == task


async def test_stream_starts_with_the_task_and_ends_with_its_final_status(http: httpx.AsyncClient) -> None:
    client = await connect(http, 'slow-writer')
    request = SendStreamingMessageRequest(id='s-1', params=send_params('sections=3 delay=20ms'))
    stream = client.send_message_streaming(request, http_kwargs={'timeout': 10})
    responses = [response.root async for response in stream]
    assert {response.id for response in responses} == {'s-1'}
    task, *updates = [response.result for response in responses]
    assert isinstance(task, Task)
    assert len([u for u in updates if isinstance(u, TaskArtifactUpdateEvent)]) >= 3
    finals = [u.final for u in updates if isinstance(u, TaskStatusUpdateEvent)]
    assert finals == [False] * (len(finals) - 1) + [True]
    assert updates[-1].status.state == TaskState.completed


async def test_second_message_continues_the_task(http: httpx.AsyncClient) -> None:
    client = await connect(http, 'approver')
    waiting = await send(client, send_params('may I?'))
    assert waiting.status.state == TaskState.input_required
    finished = await send(client, send_params('approve', waiting))
    assert (finished.id, finished.status.state) == (waiting.id, TaskState.completed)


async def test_second_cancel_is_rejected(http: httpx.AsyncClient) -> None:
    client = await connect(http, 'echo')
    task = await send(client, send_params('hold this', blocking=False))
    cancel = CancelTaskRequest(id='c-1', params=TaskIdParams(id=task.id))
    assert (await client.cancel_task(cancel)).root.result.status.state == TaskState.canceled
    again = (await client.cancel_task(cancel)).root
    assert (again.id, again.error.code, again.error.message) == ('c-1', -32002, 'Task cannot be canceled')


async def test_errors_have_the_codes_of_the_schema(http: httpx.AsyncClient) -> None:
    client = await connect(http, 'echo')
    unknown = await client.get_task(GetTaskRequest(id='g', params=TaskQueryParams(id='nobody-made-this')))
    assert (unknown.root.error.code, unknown.root.error.message) == (-32001, 'Task not found')
    task = await send(client, send_params('done at once'))
    over = await client.send_message(SendMessageRequest(id='m', params=send_params('more', task)))
    assert over.root.error.code == -32004
    # In this version a push configuration is requested by its task id alone.
    push = await client.get_task_callback(
        GetTaskPushNotificationConfigRequest(id='p', params=GetTaskPushNotificationConfigParams(id=task.id))
    )
    assert push.root.error.code == -32003
