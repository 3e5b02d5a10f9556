// A sample agent on the server of the official JavaScript SDK, built like that SDK's own samples.
//
// The SDK does all encoding and decoding. A message starts with a command; the commands are the same for every sample
// agent and are listed in `conftest.py` in the parent folder. The agent prints its URL as the only line on stdout.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentCard, Artifact, Message, Role, Task, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

class SampleExecutor {
  // For each task that is held until it is cancelled, the function that ends it.
  #held = new Map();

  async execute({ taskId, contextId, userMessage, task }, bus) {
    const text = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
    const [command, rest] = text.split(' ');
    if (command === 'hello') {
      bus.publish(AgentEvent.message(agentMessage('Hello World', {})));
      bus.finished();
      return;
    }
    const ids = { taskId, contextId };
    const status = (state, reason) => ({
      state,
      message: reason === undefined ? undefined : agentMessage(reason, ids),
      timestamp: new Date().toISOString(),
    });
    const update = (state, reason) =>
      bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(state, reason), metadata: undefined }));
    const artifact = (artifactId, parts, append, lastChunk) =>
      bus.publish(
        AgentEvent.artifactUpdate({
          ...ids,
          artifact: { ...Artifact.fromJSON({ artifactId, name: artifactId }), parts },
          append,
          lastChunk,
          metadata: undefined,
        }),
      );
    const finish = (parts) => {
      artifact('result', parts, false, true);
      update(TaskState.TASK_STATE_COMPLETED);
    };
    const first = { ...Task.fromJSON({ id: taskId, contextId }), status: status(TaskState.TASK_STATE_SUBMITTED) };
    bus.publish(AgentEvent.task(task ?? { ...first, history: [userMessage] }));

    if (task) {
      finish([textPart(`you said ${command}`)]);
    } else if (command === 'write') {
      update(TaskState.TASK_STATE_WORKING, 'writing');
      const count = Number(rest);
      for (let n = 1; n <= count; n += 1) {
        artifact('text', [textPart(`chunk ${n}\n`)], n > 1, n === count);
        await sleep(10);
      }
      update(TaskState.TASK_STATE_COMPLETED);
    } else if (command === 'ask') {
      update(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which currency?');
    } else if (command === 'login') {
      update(TaskState.TASK_STATE_AUTH_REQUIRED, 'Who are you?');
    } else if (command === 'fail') {
      update(TaskState.TASK_STATE_FAILED, 'it did not work');
    } else if (command === 'reject') {
      update(TaskState.TASK_STATE_REJECTED, 'not my business');
    } else if (command === 'hold') {
      update(TaskState.TASK_STATE_WORKING, 'holding');
      await new Promise((end) => this.#held.set(taskId, end));
      update(TaskState.TASK_STATE_CANCELED);
    } else if (command === 'crash') {
      throw new Error('the sample agent crashed');
    } else {
      finish(userMessage.parts);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#held.get(taskId)?.();
  }
}

function textPart(text) {
  return Message.fromJSON({ parts: [{ text }] }).parts[0];
}

function agentMessage(text, ids) {
  return { ...Message.fromJSON({ messageId: randomUUID(), parts: [{ text }], ...ids }), role: Role.ROLE_AGENT };
}

function card(url) {
  return AgentCard.fromJSON({
    name: 'Sample agent',
    description: 'Does what the first word says',
    version: '1.2.3',
    supportedInterfaces: ['0.3', '1.0'].map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
    })),
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [
      { id: 'write', name: 'Write', description: 'Writes chunks', tags: ['text'], examples: ['write 5'] },
      { id: 'ask', name: 'Ask', description: 'Asks for input', tags: ['turns'] },
    ],
  });
}

const app = express();
const server = createServer(app);
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  const requestHandler = new DefaultRequestHandler(card(url), new InMemoryTaskStore(), new SampleExecutor());
  const legacyCompat = { enabled: true };
  app.use(
    '/.well-known/agent-card.json',
    agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }),
  );
  app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
  console.log(url);
});
