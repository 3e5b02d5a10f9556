"""A session of the official Python SDK 0.3 with webhooks; prints what it saw as JSON.

The arguments are the URL of the server and the binding.
"""

import asyncio
import json
import sys

from typing import Any
from uuid import uuid4

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

from receiver import Delivery, Receiver


async def send(client: Client, text: str, task: Task | None = None) -> Task:
    ids = {'task_id': task.id, 'context_id': task.context_id} if task else {}
    message = Message(message_id=str(uuid4()), role=Role.user, parts=[Part(TextPart(text=text))], **ids)
    ((task, _),) = [event async for event in client.send_message(message)]
    return task


def dump(model: Any) -> Any:
    return model.model_dump(mode='json', by_alias=True, exclude_none=True)


def parsed(delivery: Delivery) -> Task:
    """The task of a notification."""
    assert delivery.headers['content-type'] == 'application/json'
    return Task.model_validate_json(delivery.body)


class Session:
    def __init__(self, url: str, binding: str) -> None:
        self.url, self.binding = url, binding
        self.http = httpx.AsyncClient(timeout=10, trust_env=False)

    async def connect(
        self, agent: str, *push: PushNotificationConfig, binding: str | None = None
    ) -> Client:
        resolver = A2ACardResolver(self.http, f'{self.url}/a2a/{agent}')
        card = await resolver.get_agent_card(relative_card_path='.well-known/agent.json')
        config = ClientConfig(
            streaming=False,
            httpx_client=self.http,
            supported_transports=[binding or self.binding],
            push_notification_configs=list(push),
        )
        return await ClientFactory.connect(card, config)

    async def stored(self, agent: str, task: Task) -> dict[str, Any]:
        """A task as JSON-RPC shows it: over HTTP+JSON the SDK reads a missing member as an empty one."""
        client = await self.connect(agent, binding='JSONRPC')
        return dump(await client.get_task(TaskQueryParams(id=task.id)))

    async def inline(self) -> dict[str, Any]:
        receiver = Receiver()
        client = await self.connect('echo', PushNotificationConfig(url=receiver.url, token='secret'))
        task = await send(client, 'hello')
        delivery = receiver.wait_for_state('completed')
        return {
            'stored': await self.stored('echo', task),
            'delivered': dump(parsed(delivery)),
            'token': delivery.headers['x-a2a-notification-token'],
        }

    async def set(self) -> dict[str, Any]:
        receiver = Receiver()
        client = await self.connect('main')
        task = await send(client, 'jump')
        authentication = PushNotificationAuthenticationInfo(schemes=['Bearer'], credentials='credential')
        config = PushNotificationConfig(
            id='mine', url=receiver.url, token='a secret', authentication=authentication
        )
        given = TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
        returned = await client.set_task_callback(given)
        params = GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id='mine')
        read = await client.get_task_callback(params)
        await send(client, 'approve', task)
        delivery = receiver.wait_for_state('completed')
        return {
            'given': dump(given),
            'returned': dump(returned),
            'read': dump(read),
            'stored': await self.stored('main', task),
            'delivered': dump(parsed(delivery)),
            'states': [parsed(each).status.state.value for each in receiver.deliveries],
            'authorization': delivery.headers['authorization'],
        }


async def main() -> None:
    session = Session(*sys.argv[1:])
    print(json.dumps({'inline': await session.inline(), 'set': await session.set()}))


asyncio.run(main())
