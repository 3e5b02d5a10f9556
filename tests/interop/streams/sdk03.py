"""The adapter for all releases of SDK 0.3."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx

from a2a.client import A2ACardResolver, Client as SdkClient, ClientConfig, ClientEvent, ClientFactory
from a2a.types import (
    AgentCard,
    Message,
    Part,
    Role,
    Task,
    TaskIdParams,
    TaskQueryParams,
    TextPart,
    TransportProtocol,
)

from wire import Event


BINDINGS = [TransportProtocol.jsonrpc.value, TransportProtocol.http_json.value]


async def connect(http: httpx.AsyncClient, url: str, binding: str) -> 'Client':
    return Client(http, await A2ACardResolver(http, url).get_agent_card(), binding)


class Client:
    def __init__(self, http: httpx.AsyncClient, card: AgentCard, binding: str) -> None:
        def create(**options: bool) -> SdkClient:
            config = ClientConfig(httpx_client=http, supported_transports=[binding], **options)
            return ClientFactory(config).create(card)

        self.client = create()
        self.polling = create(streaming=False, polling=True)

    async def stream(self, text: str) -> AsyncIterator[Event]:
        async for change in self.client.send_message(message(text)):
            yield event(change)

    async def subscribe(self, task: str) -> AsyncIterator[Event]:
        async for change in self.client.resubscribe(TaskIdParams(id=task)):
            yield event(change)

    async def send_without_blocking(self, text: str) -> Event:
        (created,) = [event(change) async for change in self.polling.send_message(message(text))]
        return created

    async def get(self, task: str) -> Event:
        return task_event(await self.client.get_task(TaskQueryParams(id=task)))

    async def cancel(self, task: str) -> Event:
        return task_event(await self.client.cancel_task(TaskIdParams(id=task)))


def message(text: str) -> Message:
    return Message(message_id=str(uuid4()), role=Role.user, parts=[Part(TextPart(text=text))])


def event(change: ClientEvent) -> Event:
    task, update = change
    return Event(update.task_id, update.status.state.value) if update else task_event(task)


def task_event(task: Task) -> Event:
    return Event(task.id, task.status.state.value)
