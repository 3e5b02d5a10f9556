// Helpers of the tests: clients of the server under test, which the official SDK creates from the agent cards of the
// server, messages to its agents, and accessors for the responses, in the SDK's own types.
//
// `A2AD_URL` is the URL of a running server, such as `http://127.0.0.1:4242`. Nothing here starts or stops it. Tests
// that connect run once for each version and binding; an agent has the same tasks in all of them.

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

// The SDK uses the same types for all versions and bindings, so most tests are written once and run for each.
export const VERSIONS = ['1.0', '0.3'];
export const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'];
// For 0.3 over HTTP+JSON and gRPC the SDK uses the protobuf schema and is `lossy`: it does not read `append` and file
// names, and it returns the content of a file as base64 text without decoding it.
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

// The path of the card that selects each version, below the URL of an agent.
const CARD = { '1.0': '.well-known/agent-card.json', '0.3': '.well-known/agent.json' };

const legacyCompat = { enabled: true };

/** A client of one agent in one version and binding. With `polling` its sends are non-blocking; `server` and
 * `fetchImpl` replace the URL of the server and the `fetch` function. */
export async function connect(
  agent,
  { version = '1.0', binding = 'JSONRPC', polling = false, server = url, fetchImpl } = {},
) {
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat });
  const card = await cardResolver.resolve(`${server}/a2a/${agent}/`, CARD[version]);
  if (version === '0.3' && binding === 'GRPC') {
    // Only the default agent's card has the gRPC address, because in 0.3 the address does not identify an agent.
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
      // A gRPC address has no path, and 0.3 has no request field for the agent, so the metadata names the agent.
      return new GrpcTransportFactory({
        legacyCompat,
        grpcCallOptions: version === '0.3' ? { interceptors: [agentMetadata(agent)] } : {},
      });
  }
}

/** Adds the agent to the metadata of every call. */
function agentMetadata(agent) {
  return (options, next) =>
    new InterceptingCall(next(options), {
      start(metadata, listener, start) {
        metadata.set('a2a-agent', agent);
        start(metadata, listener);
      },
    });
}

/** A request with a text of the user: the first message of a new task, or the next one of `task`. */
export function userMessage(text, task) {
  return message([{ text }], task);
}

/** A request with parts of the user, which are given in the JSON format of the protocol. */
export function message(parts, task) {
  const ids = task ? { taskId: task.id, contextId: task.contextId } : {};
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts, ...ids },
  });
}

/** Sends without streaming; the response must be a task. */
export async function send(client, request) {
  const task = await client.sendMessage(request);
  assert.ok('status' in task, 'expected a task, got a message');
  return task;
}

/** Creates a task with a non-blocking send. */
export async function startTask(agent, text, mode = MODES[0]) {
  return send(await connect(agent, { ...mode, polling: true }), userMessage(text));
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream) {
    events.push(event.payload);
  }
  return events;
}

/** Reads the events of a task to the end of the stream; calls `then` once the snapshot has arrived. */
export async function subscribe(client, task, then = async () => {}) {
  const events = [];
  for await (const event of client.resubscribeTask({ id: task.id, tenant: '' })) {
    events.push(event.payload);
    if (events.length === 1) {
      await then();
    }
  }
  return events;
}

/** The task that a stream describes: the first event, with every later one merged by the rules of the protocol. A
 * lossy client does not read `append`, so every chunk of an artifact is appended. */
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

/** Asserts that the last event, and no other, ends the task. */
export function assertEndsOnce(events, state) {
  assert.equal(events.at(-1).$case, 'statusUpdate');
  assert.equal(events.at(-1).value.status.state, state);
  assert.deepEqual(
    states(events).filter((each) => TERMINAL.includes(each)),
    [state],
  );
}

/** The text of each artifact, its parts joined. */
export function texts(task) {
  return task.artifacts.map(({ parts }) => parts.map(({ content }) => content.value).join(''));
}

export function get(client, task) {
  return client.getTask({ id: task.id, tenant: '' });
}

export function cancel(client, task) {
  return client.cancelTask({ id: task.id, tenant: '', metadata: undefined });
}
