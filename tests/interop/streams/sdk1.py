"""The adapter for SDK 1.x."""

from collections.abc import AsyncIterator

import httpx

from a2a.client import A2ACardResolver, Client as SdkClient, ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.constants import TransportProtocol

from wire import Event


BINDINGS = [TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value]


async def connect(http: httpx.AsyncClient, url: str, binding: str) -> 'Client':
    return Client(http, await A2ACardResolver(http, url).get_agent_card(), binding)


class Client:
    def __init__(self, http: httpx.AsyncClient, card: AgentCard, binding: str) -> None:
        def create(**options: bool) -> SdkClient:
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], **options)
            return ClientFactory(config).create(card)

        self.client = create()
        self.polling = create(streaming=False, polling=True)

    async def stream(self, text: str) -> AsyncIterator[Event]:
        async for response in self.client.send_message(request(text)):
            yield event(response)

    async def subscribe(self, task: str) -> AsyncIterator[Event]:
        async for response in self.client.subscribe(SubscribeToTaskRequest(id=task)):
            yield event(response)

    async def send_without_blocking(self, text: str) -> Event:
        (created,) = [event(response) async for response in self.polling.send_message(request(text))]
        return created

    async def get(self, task: str) -> Event:
        return task_event(await self.client.get_task(GetTaskRequest(id=task)))

    async def cancel(self, task: str) -> Event:
        return task_event(await self.client.cancel_task(CancelTaskRequest(id=task)))


def request(text: str) -> SendMessageRequest:
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))


def event(response: StreamResponse) -> Event:
    if response.HasField('task'):
        return task_event(response.task)
    assert response.HasField('status_update'), response
    return Event(response.status_update.task_id, state(response.status_update.status))


def task_event(task: Task) -> Event:
    return Event(task.id, state(task.status))


def state(status: TaskStatus) -> str:
    return TaskState.Name(status.state).removeprefix('TASK_STATE_').lower()
