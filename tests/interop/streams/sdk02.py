"""The adapter for SDK 0.2, which has only the JSON-RPC binding."""

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx

from a2a.client import A2AClient, create_text_message_object
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    MessageSendConfiguration,
    MessageSendParams,
    SendMessageRequest,
    SendStreamingMessageRequest,
    Task,
    TaskIdParams,
    TaskQueryParams,
    TaskResubscriptionRequest,
    TaskStatusUpdateEvent,
)

from wire import Event


BINDINGS = ['JSONRPC']


async def connect(http: httpx.AsyncClient, url: str, binding: str) -> 'Client':
    return Client(await A2AClient.get_client_from_agent_card_url(http, url))


class Client:
    def __init__(self, client: A2AClient) -> None:
        self.client = client

    def stream(self, text: str) -> AsyncIterator[Event]:
        return self._follow(SendStreamingMessageRequest(id=str(uuid4()), params=send_params(text, blocking=True)))

    def subscribe(self, task: str) -> AsyncIterator[Event]:
        # This version has the request type but no method for it; the method for streams sends any request.
        return self._follow(TaskResubscriptionRequest(id=str(uuid4()), params=TaskIdParams(id=task)))

    async def _follow(self, request) -> AsyncIterator[Event]:
        async for response in self.client.send_message_streaming(request):
            yield event(response.root.result)

    async def send_without_blocking(self, text: str) -> Event:
        request = SendMessageRequest(id=str(uuid4()), params=send_params(text, blocking=False))
        return event((await self.client.send_message(request)).root.result)

    async def get(self, task: str) -> Event:
        request = GetTaskRequest(id=str(uuid4()), params=TaskQueryParams(id=task))
        return event((await self.client.get_task(request)).root.result)

    async def cancel(self, task: str) -> Event:
        request = CancelTaskRequest(id=str(uuid4()), params=TaskIdParams(id=task))
        return event((await self.client.cancel_task(request)).root.result)


def send_params(text: str, *, blocking: bool) -> MessageSendParams:
    # In this version the output modes are required.
    configuration = MessageSendConfiguration(accepted_output_modes=['text/plain'], blocking=blocking)
    return MessageSendParams(message=create_text_message_object(content=text), configuration=configuration)


def event(result: Task | TaskStatusUpdateEvent) -> Event:
    task = result.id if isinstance(result, Task) else result.task_id
    return Event(task, result.status.state.value)
