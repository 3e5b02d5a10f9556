"""A sample agent on the server of the official Python SDK of protocol 0.3, built like that SDK's own samples.

The SDK does all encoding and decoding. A message starts with a command; the commands are the same for every sample
agent and are listed in `conftest.py` in the parent folder. The agent prints its URL as the only line on stdout.
"""

import asyncio
import socket

import uvicorn

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Message, Part, TextPart
from a2a.utils import new_agent_text_message, new_task


class SampleExecutor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        command, _, rest = context.get_user_input().partition(' ')
        if command == 'hello':
            await event_queue.enqueue_event(new_agent_text_message('Hello World'))
            return
        is_reply = context.current_task is not None
        if not is_reply:
            await event_queue.enqueue_event(new_task(context.message))
        task = TaskUpdater(event_queue, context.task_id, context.context_id)

        def agent_message(text: str) -> Message:
            return task.new_agent_message([text_part(text)])

        async def finish(parts: list[Part]) -> None:
            await task.add_artifact(parts, name='result')
            await task.complete()

        if is_reply:
            await finish([text_part(f'you said {command}')])
        elif command == 'write':
            await task.start_work(agent_message('writing'))
            await write(task, int(rest))
            await task.complete()
        elif command == 'ask':
            await task.requires_input(agent_message('Which currency?'), final=True)
        elif command == 'login':
            await task.requires_auth(agent_message('Who are you?'), final=True)
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
            await finish(context.message.parts)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


async def write(task: TaskUpdater, count: int) -> None:
    """Writes one artifact in this many chunks."""
    for n in range(1, count + 1):
        await task.add_artifact(
            [text_part(f'chunk {n}\n')],
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
        url=url,
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
    handler = DefaultRequestHandler(agent_executor=SampleExecutor(), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card(url), http_handler=handler).build()
    server = uvicorn.Server(uvicorn.Config(app, log_level='warning'))
    print(url, flush=True)
    server.run(sockets=[listener])


if __name__ == '__main__':
    main()
