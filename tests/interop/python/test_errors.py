"""Errors arrive as the SDK's own error types, not as transport failures."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from a2a.client import Client, ClientCallContext
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from conftest import Connect
from helpers import send, send_streaming, user_message


UNKNOWN = Task(id='task_that_nobody_ever_made')


async def subscribe(client: Client, task: Task) -> None:
    async for _ in client.subscribe(SubscribeToTaskRequest(id=task.id)):
        pytest.fail('expected an error, got a stream')


async def send_more(client: Client, task: Task) -> None:
    async for _ in send_streaming(client, user_message('more', task)):
        pytest.fail('expected an error, got a response')


async def get(client: Client, task: Task) -> None:
    await client.get_task(GetTaskRequest(id=task.id))


async def cancel(client: Client, task: Task) -> None:
    await client.cancel_task(CancelTaskRequest(id=task.id))


@pytest.mark.parametrize('operation', [get, cancel, subscribe, send_more])
async def test_unknown_task_is_not_found(
    connect: Connect, operation: Callable[[Client, Task], Awaitable[None]]
) -> None:
    with pytest.raises(TaskNotFoundError):
        await operation(await connect('echo'), UNKNOWN)


async def test_task_of_another_agent_is_not_found(connect: Connect) -> None:
    task = await send(await connect('echo', streaming=False), user_message('mine'))
    with pytest.raises(TaskNotFoundError):
        await get(await connect('approver'), task)


@pytest.mark.parametrize('operation', [subscribe, send_more])
async def test_finished_task_rejects_subscribers_and_messages(
    connect: Connect, operation: Callable[[Client, Task], Awaitable[None]]
) -> None:
    task = await send(await connect('echo', streaming=False), user_message('done at once'))
    with pytest.raises(UnsupportedOperationError):
        await operation(await connect('echo'), task)


async def test_message_without_parts_is_rejected_and_creates_no_task(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    context = f'context-{uuid4()}'
    with pytest.raises(InvalidParamsError, match='parts'):
        await send(client, Message(message_id=str(uuid4()), role=Role.ROLE_USER, context_id=context))
    assert (await client.list_tasks(ListTasksRequest(context_id=context))).total_size == 0


async def test_push_config_is_rejected_as_unsupported(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await send(client, user_message('no push'))
    config = TaskPushNotificationConfig(task_id=task.id, url='https://example.com/hook')
    with pytest.raises(PushNotificationNotSupportedError):
        await client.create_task_push_notification_config(config)


async def test_missing_required_extension_is_rejected(connect: Connect) -> None:
    client = await connect('strict', streaming=False)
    with pytest.raises(ExtensionSupportRequiredError, match='urn:example:strict'):
        await send(client, user_message('may I?'))
    with_extension = ClientCallContext(service_parameters={'A2A-Extensions': 'urn:example:strict'})
    request = SendMessageRequest(message=user_message('may I?'))
    (response,) = [response async for response in client.send_message(request, context=with_extension)]
    assert response.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED


async def test_unsupported_output_mode_is_rejected(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    request = SendMessageRequest(
        message=user_message('may I?'), configuration=SendMessageConfiguration(accepted_output_modes=['image/png'])
    )
    with pytest.raises(ContentTypeNotSupportedError):
        async for _ in client.send_message(request):
            pytest.fail('expected an error, got a response')
