"""Refusals arrive as the SDK's own kinds of error, not as broken transport."""

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
from talk import ask, say, send


UNKNOWN = Task(id='task_that_nobody_ever_made')


async def subscribe(client: Client, task: Task) -> None:
    async for _ in client.subscribe(SubscribeToTaskRequest(id=task.id)):
        pytest.fail('a stream where a refusal was due')


async def say_more(client: Client, task: Task) -> None:
    async for _ in send(client, say('more', task)):
        pytest.fail('an answer where a refusal was due')


async def get(client: Client, task: Task) -> None:
    await client.get_task(GetTaskRequest(id=task.id))


async def cancel(client: Client, task: Task) -> None:
    await client.cancel_task(CancelTaskRequest(id=task.id))


@pytest.mark.parametrize('operation', [get, cancel, subscribe, say_more])
async def test_an_unknown_task_is_not_found(
    connect: Connect, operation: Callable[[Client, Task], Awaitable[None]]
) -> None:
    with pytest.raises(TaskNotFoundError):
        await operation(await connect('echo'), UNKNOWN)


async def test_a_task_is_unknown_to_other_agents(connect: Connect) -> None:
    task = await ask(await connect('echo', streaming=False), say('mine'))
    with pytest.raises(TaskNotFoundError):
        await get(await connect('approver'), task)


@pytest.mark.parametrize('operation', [subscribe, say_more])
async def test_a_finished_task_takes_no_subscriber_and_no_message(
    connect: Connect, operation: Callable[[Client, Task], Awaitable[None]]
) -> None:
    task = await ask(await connect('echo', streaming=False), say('done at once'))
    with pytest.raises(UnsupportedOperationError):
        await operation(await connect('echo'), task)


async def test_a_message_without_parts_is_refused_and_makes_no_task(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    context = f'context-{uuid4()}'
    with pytest.raises(InvalidParamsError, match='parts'):
        await ask(client, Message(message_id=str(uuid4()), role=Role.ROLE_USER, context_id=context))
    assert (await client.list_tasks(ListTasksRequest(context_id=context))).total_size == 0


async def test_push_is_refused_as_unsupported(connect: Connect) -> None:
    client = await connect('echo', streaming=False)
    task = await ask(client, say('no push'))
    config = TaskPushNotificationConfig(task_id=task.id, url='https://example.com/hook')
    with pytest.raises(PushNotificationNotSupportedError):
        await client.create_task_push_notification_config(config)


async def test_an_extension_that_is_required_has_to_be_known(connect: Connect) -> None:
    client = await connect('strict', streaming=False)
    with pytest.raises(ExtensionSupportRequiredError, match='urn:example:strict'):
        await ask(client, say('may I?'))
    knowing = ClientCallContext(service_parameters={'A2A-Extensions': 'urn:example:strict'})
    request = SendMessageRequest(message=say('may I?'))
    (answer,) = [answer async for answer in client.send_message(request, context=knowing)]
    assert answer.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED


async def test_an_answer_nobody_could_read_is_not_begun(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    request = SendMessageRequest(
        message=say('may I?'), configuration=SendMessageConfiguration(accepted_output_modes=['image/png'])
    )
    with pytest.raises(ContentTypeNotSupportedError):
        async for _ in client.send_message(request):
            pytest.fail('an answer where a refusal was due')
