"""A sample agent on the server of the official Python SDK, built like that SDK's own samples.

The SDK does all encoding and decoding. A message starts with a command; the commands are the same for every sample
agent and are listed in `conftest.py` in the parent folder. The agent prints its URL as the only line on stdout.
"""

import asyncio
import socket

import uvicorn

from a2a.helpers import get_message_text, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part
from starlette.applications import Starlette


class SampleExecutor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        command, _, rest = get_message_text(context.message).partition(' ')
        if command == 'hello':
            await event_queue.enqueue_event(new_text_message('Hello World'))
            return
        is_reply = context.current_task is not None
        if not is_reply:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)

        def agent_message(text: str) -> Message:
            return task.new_agent_message([new_text_part(text)])

        async def finish(parts: list[Part]) -> None:
            await task.add_artifact(parts, name='result')
            await task.complete()

        if is_reply:
            await finish([new_text_part(f'you said {command}')])
        elif command == 'write':
            await task.start_work(agent_message('writing'))
            await write(task, int(rest))
            await task.complete()
        elif command == 'ask':
            await task.requires_input(agent_message('Which currency?'))
        elif command == 'login':
            await task.requires_auth(agent_message('Who are you?'))
        elif command == 'fail':
            await task.failed(agent_message('it did not work'))
        elif command == 'reject':
            await task.reject(agent_message('not my business'))
        elif command == 'hold':
            await task.start_work(agent_message('holding'))
            await asyncio.Event().wait()
        elif command == 'crash':
            raise RuntimeError('the sample agent crashed')
        else:
            await finish(list(context.message.parts))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def write(task: TaskUpdater, count: int) -> None:
    """Writes one artifact in this many chunks."""
    for n in range(1, count + 1):
        await task.add_artifact(
            [new_text_part(f'chunk {n}\n')],
            artifact_id='text',
            name='text',
            append=n > 1,
            last_chunk=n == count,
        )
        await asyncio.sleep(0.01)


def card(url: str) -> AgentCard:
    return AgentCard(
        name='Sample agent',
        description='Does what the first word says',
        version='1.2.3',
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding='JSONRPC', protocol_version=version)
            for version in ('0.3', '1.0')
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[
            AgentSkill(id='write', name='Write', description='Writes chunks', tags=['text'], examples=['write 5']),
            AgentSkill(id='ask', name='Ask', description='Asks for input', tags=['turns']),
        ],
    )


def main() -> None:
    listener = socket.create_server(('127.0.0.1', 0))
    url = f'http://127.0.0.1:{listener.getsockname()[1]}/'
    agent_card = card(url)
    handler = DefaultRequestHandler(
        agent_executor=SampleExecutor(), task_store=InMemoryTaskStore(), agent_card=agent_card
    )
    routes = [
        *create_agent_card_routes(agent_card),
        *create_jsonrpc_routes(handler, '/', enable_v0_3_compat=True),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level='warning'))
    print(url, flush=True)
    server.run(sockets=[listener])


if __name__ == '__main__':
    main()
