"""The official Python SDKs register webhooks, and read the notifications in their own types."""

import json
import os
import subprocess

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import grpc
import httpx
import pytest

from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.constants import TransportProtocol
from google.protobuf import json_format

from calls import PushServer
from receiver import Delivery, Receiver


Connect = Callable[..., Awaitable[Client]]

BINDINGS = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON, TransportProtocol.GRPC]
MASKED = '***'


@pytest.fixture(params=BINDINGS, ids=['jsonrpc', 'rest', 'grpc'])
async def connect(server: PushServer, request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Connects clients, with a config of a webhook for every send."""
    opened: list[Client | httpx.AsyncClient] = []

    async def connect(agent: str, push: TaskPushNotificationConfig | None = None) -> Client:
        http = httpx.AsyncClient(timeout=10, trust_env=False)
        config = ClientConfig(
            streaming=False,
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[request.param],
            push_notification_config=push,
        )
        client = await create_client(f'{server.url}/a2a/{agent}', config)
        opened.extend([client, http])
        return client

    yield connect
    for each in opened:
        await (each.close() if isinstance(each, Client) else each.aclose())


async def send(client: Client, text: str, task: Task | None = None) -> Task:
    ids = {'task_id': task.id, 'context_id': task.context_id} if task else {}
    request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER, **ids))
    (response,) = [response async for response in client.send_message(request)]
    return response.task


def parsed(delivery: Delivery) -> Task:
    """The task of a notification; a member that the SDK does not know is an error."""
    assert delivery.headers['a2a-version'] == '1.0'
    response = json_format.Parse(delivery.body, StreamResponse())
    assert response.WhichOneof('payload') == 'task'
    return response.task


async def test_inline_config(connect: Connect, receiver: Receiver) -> None:
    client = await connect('echo', TaskPushNotificationConfig(url=receiver.url, token='secret'))
    task = await send(client, 'hello')
    delivery = receiver.wait_for_state('completed')
    assert parsed(delivery) == task
    assert delivery.headers['x-a2a-notification-token'] == 'secret'
    assert delivery.headers['a2a-notification-token'] == 'secret'


async def test_created_config(connect: Connect, receiver: Receiver) -> None:
    client = await connect('main')
    task = await send(client, 'jump')
    given = TaskPushNotificationConfig(
        id='mine',
        task_id=task.id,
        url=receiver.url,
        token='secret',
        authentication=AuthenticationInfo(scheme='Bearer', credentials='credential'),
    )
    created = await client.create_task_push_notification_config(given)
    created.tenant = ''
    assert created == given
    # Secrets are shown once.
    masked = TaskPushNotificationConfig()
    masked.CopyFrom(given)
    masked.token = masked.authentication.credentials = MASKED
    named = {'task_id': task.id, 'id': 'mine'}
    read = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**named))
    listed = await client.list_task_push_notification_configs(
        ListTaskPushNotificationConfigsRequest(task_id=task.id)
    )
    assert [*listed.configs] == [read] and read == masked

    completed = await send(client, 'approve', task)
    assert completed.status.state == TaskState.TASK_STATE_COMPLETED
    delivery = receiver.wait_for_state('completed')
    assert parsed(delivery) == completed
    assert delivery.headers['authorization'] == 'Bearer credential'
    states = [parsed(each).status.state for each in receiver.deliveries]
    assert states[0] == TaskState.TASK_STATE_INPUT_REQUIRED

    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named))
    listed = await client.list_task_push_notification_configs(
        ListTaskPushNotificationConfigsRequest(task_id=task.id)
    )
    assert not listed.configs


async def test_deleted_config_gets_nothing(connect: Connect, receiver: Receiver) -> None:
    client = await connect('main')
    task = await send(client, 'jump')
    for name in ('deleted', 'kept'):
        config = TaskPushNotificationConfig(id=name, task_id=task.id, url=f'{receiver.origin}/{name}')
        await client.create_task_push_notification_config(config)
    receiver.wait_for_count(2)
    named = {'task_id': task.id, 'id': 'deleted'}
    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named))
    await send(client, 'approve', task)
    receiver.wait_for_state('completed')
    assert {each.path for each in receiver.deliveries if each.state == 'completed'} == {'/kept'}


@pytest.mark.parametrize('binding', ['JSONRPC', 'HTTP+JSON'])
def test_sdk_of_0_3(server: PushServer, binding: str) -> None:
    script = Path(__file__).with_name('sdk03_client.py')
    done = subprocess.run(
        [os.environ['PYTHON_SDK_03'], str(script), server.url, binding],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen['inline']['delivered'] == seen['inline']['stored']
    assert seen['inline']['token'] == 'secret'
    assert seen['set']['delivered'] == seen['set']['stored']
    assert seen['set']['states'][0] == 'input-required' and seen['set']['states'][-1] == 'completed'
    assert seen['set']['authorization'] == 'Bearer credential'
    assert seen['set']['returned'] == seen['set']['given']
    masked = seen['set']['read']['pushNotificationConfig']
    assert (masked['token'], masked['authentication']['credentials']) == (MASKED, MASKED)
