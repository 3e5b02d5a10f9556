// Clients of the server under test, made by the official SDK from the agent cards the server publishes; what the
// tests say to an agent, and how they read its answers, in the SDK's own types.
//
// `A2AD_URL` names a running server, as `http://127.0.0.1:4242`. Nothing here starts or stops it. Tests that connect
// run once for each version and binding; all of an agent lead to the same tasks.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { SendMessageRequest, TaskState } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { InterceptingCall } from '@grpc/grpc-js';

export const url = process.env.A2AD_URL.replace(/\/$/, '');

// The SDK shows all versions and bindings in the same types, so most tests are told once and run for each.
export const VERSIONS = ['1.0', '0.3'];
export const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'];
// Where the SDK speaks 0.3 by its protobuf file it is `lossy`: it reads no `append` and no file names, and takes the
// bytes of a file for what they are there, base64 text.
export const MODES = VERSIONS.flatMap((version) =>
  BINDINGS.map((binding) => ({
    version,
    binding,
    name: `${version} ${binding}`,
    lossy: version === '0.3' && binding !== 'JSONRPC',
  })),
);

export const TERMINAL = [
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
];

// Where the card that leads an SDK client to each version lies, below an agent.
const CARD = { '1.0': '.well-known/agent-card.json', '0.3': '.well-known/agent.json' };

const legacyCompat = { enabled: true };

/** A client of one agent in one version and binding. `polling` makes a send that returns at once; `server` and
 * `fetchImpl` are another server's address and another `fetch` than usual. */
export async function connect(
  agent,
  { version = '1.0', binding = 'JSONRPC', polling = false, server = url, fetchImpl } = {},
) {
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat });
  const card = await cardResolver.resolve(`${server}/a2a/${agent}/`, CARD[version]);
  if (version === '0.3' && binding === 'GRPC') {
    // Only the default agent's card names the address: clients of 0.3 cannot tell agents apart by it.
    const root = await cardResolver.resolve(`${server}/`, CARD[version]);
    card.supportedInterfaces.push(...root.supportedInterfaces.filter((each) => each.protocolBinding === 'GRPC'));
  }
  const factory = new ClientFactory({
    transports: [transport(binding, version, agent, fetchImpl)],
    cardResolver,
    clientConfig: { polling },
  });
  const client = await factory.createFromAgentCard(card);
  assert.equal(client.protocolVersion, version);
  assert.equal(client.transport.protocolName, binding);
  return client;
}

function transport(binding, version, agent, fetchImpl) {
  switch (binding) {
    case 'JSONRPC':
      return new JsonRpcTransportFactory({ legacyCompat, fetchImpl });
    case 'HTTP+JSON':
      return new RestTransportFactory({ legacyCompat, fetchImpl });
    default:
      // There is no path in gRPC, and in 0.3 no field for it: who is meant is told beside the request.
      return new GrpcTransportFactory({
        legacyCompat,
        grpcCallOptions: version === '0.3' ? { interceptors: [naming(agent)] } : {},
      });
  }
}

/** Names the agent in every call. */
function naming(agent) {
  return (options, next) =>
    new InterceptingCall(next(options), {
      start(metadata, listener, start) {
        metadata.set('a2a-agent', agent);
        start(metadata, listener);
      },
    });
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

/** Makes a task and does not wait for its end. */
export async function begin(agent, text, mode = MODES[0]) {
  return ask(await connect(agent, { ...mode, polling: true }), say(text));
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

/** The task a stream tells: its first frame, with every later one merged as the protocol says; a lossy client has to
 * know that every chunk of an artifact is appended. */
export function fold(events, { lossy } = MODES[0]) {
  assert.equal(events[0].$case, 'task');
  const task = structuredClone(events[0].value);
  for (const { $case, value } of events.slice(1)) {
    assert.equal(value.taskId, task.id);
    assert.equal(value.contextId, task.contextId);
    if ($case === 'statusUpdate') {
      task.status = value.status;
    } else {
      assert.equal($case, 'artifactUpdate');
      merge(task.artifacts, lossy ? { ...value, append: true } : value);
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
