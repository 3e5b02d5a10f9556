// Clients of the server under test, made by the official SDK from the agent cards the server publishes; what the
// tests say to an agent, and how they read its answers, in the SDK's own types.
//
// `A2AD_URL` names a running server, as `http://127.0.0.1:4242`. Nothing here starts or stops it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { SendMessageRequest, TaskState } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

export const url = process.env.A2AD_URL.replace(/\/$/, '');

// The SDK shows both versions in the same types, so most tests are told once and run for each.
export const VERSIONS = ['1.0', '0.3'];

export const TERMINAL = [
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
];

// Where the card that leads an SDK client to each version lies, below an agent.
const CARD = { '1.0': '.well-known/agent-card.json', '0.3': '.well-known/agent.json' };

const legacyCompat = { enabled: true };

/** A client of one agent in one version. `polling` makes a send that returns at once. */
export async function connect(agent, { version = '1.0', polling = false } = {}) {
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
    clientConfig: { polling },
  });
  const client = await factory.createFromUrl(`${url}/a2a/${agent}/`, CARD[version]);
  assert.equal(client.protocolVersion, version);
  return client;
}

/** A user's text, as a first message or as the next one of a task. */
export function say(text, task) {
  return message([{ text }], task);
}

/** A user's message of parts as the protocol spells them in JSON. */
export function message(parts, task) {
  const ids = task ? { taskId: task.id, contextId: task.contextId } : {};
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts, ...ids },
  });
}

/** Sends without streaming; the answer must be a task. */
export async function ask(client, request) {
  const task = await client.sendMessage(request);
  assert.ok('status' in task, 'a message where a task was due');
  return task;
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream) {
    events.push(event.payload);
  }
  return events;
}

/** Follows a task to the end of the stream, doing something once the snapshot has arrived. */
export async function watch(client, task, then = async () => {}) {
  const events = [];
  for await (const event of client.resubscribeTask({ id: task.id, tenant: '' })) {
    events.push(event.payload);
    if (events.length === 1) {
      await then();
    }
  }
  return events;
}

/** The task a stream tells: its first frame, with every later one merged as the protocol says. */
export function fold(events) {
  assert.equal(events[0].$case, 'task');
  const task = structuredClone(events[0].value);
  for (const { $case, value } of events.slice(1)) {
    assert.equal(value.taskId, task.id);
    assert.equal(value.contextId, task.contextId);
    if ($case === 'statusUpdate') {
      task.status = value.status;
    } else {
      assert.equal($case, 'artifactUpdate');
      merge(task.artifacts, value);
    }
  }
  return task;
}

function merge(artifacts, { artifact, append }) {
  const at = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
  if (at < 0) {
    artifacts.push(structuredClone(artifact));
  } else if (append) {
    artifacts[at].parts.push(...artifact.parts);
  } else {
    artifacts[at] = structuredClone(artifact);
  }
}

export function chunks(events) {
  return events.filter(({ $case }) => $case === 'artifactUpdate').map(({ value }) => value);
}

/** The states of a stream's status updates, in order. */
export function states(events) {
  return events.filter(({ $case }) => $case === 'statusUpdate').map(({ value }) => value.status.state);
}

/** The last event, and no other, ends the task. */
export function assertEndsOnce(events, state) {
  assert.equal(events.at(-1).$case, 'statusUpdate');
  assert.equal(events.at(-1).value.status.state, state);
  assert.deepEqual(
    states(events).filter((each) => TERMINAL.includes(each)),
    [state],
  );
}

/** The text of each artifact, however it was cut into parts. */
export function texts(task) {
  return task.artifacts.map(({ parts }) => parts.map(({ content }) => content.value).join(''));
}

export function get(client, task) {
  return client.getTask({ id: task.id, tenant: '' });
}

export function cancel(client, task) {
  return client.cancelTask({ id: task.id, tenant: '', metadata: undefined });
}
