// Clients of both SDKs with one interface, and event streams as bytes between the server and the SDK.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, on, once } from 'node:events';
import { TaskState } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from 'sdk03/client';
import { cancel, connect, get, url, userMessage } from './helpers.js';

// The protocol versions and bindings of each SDK; the later SDK supports 0.3 too.
export const SDKS = ['1.3.0', '0.3.14'];
const HTTP_BINDINGS = ['JSONRPC', 'HTTP+JSON'];
export const CLIENTS = [
  ...HTTP_BINDINGS.map((binding) => ({ sdk: '1.3.0', version: '1.0', binding })),
  ...HTTP_BINDINGS.map((binding) => ({ sdk: '1.3.0', version: '0.3', binding })),
  ...HTTP_BINDINGS.map((binding) => ({ sdk: '0.3.14', version: '0.3', binding })),
].map((each) => ({ ...each, name: `SDK ${each.sdk}, ${each.version} ${each.binding}` }));

/** A client of the echo agent. An event is returned as the id of its task and the state in lower case. */
export async function open({ sdk, version, binding }, server = url) {
  const wire = new Wire();
  const options = { version, binding, server, fetchImpl: (...request) => wire.fetch(...request) };
  return sdk === '0.3.14' ? Sdk03.open(wire, options) : Sdk1.open(wire, options);
}

class Sdk1 {
  static async open(wire, options) {
    const [client, polling] = [await connect('echo', options), await connect('echo', { ...options, polling: true })];
    return Object.assign(new Sdk1(), { wire, client, polling });
  }

  async *stream(text) {
    for await (const { payload } of this.client.sendMessageStream(userMessage(text))) {
      yield Sdk1.event(payload.value);
    }
  }

  async *subscribe(task) {
    for await (const { payload } of this.client.resubscribeTask({ id: task, tenant: '' })) {
      yield Sdk1.event(payload.value);
    }
  }

  async sendWithoutBlocking(text) {
    return Sdk1.event(await this.polling.sendMessage(userMessage(text), withTimeout()));
  }

  async get(task) {
    return Sdk1.event(await get(this.client, { id: task }));
  }

  async cancel(task) {
    return Sdk1.event(await cancel(this.client, { id: task }));
  }

  static event({ id, taskId, status }) {
    return { task: id ?? taskId, state: TaskState[status.state].replace('TASK_STATE_', '').toLowerCase() };
  }
}

class Sdk03 {
  static async open(wire, { binding, server, fetchImpl }) {
    const Factory = binding === 'JSONRPC' ? JsonRpcTransportFactory : RestTransportFactory;
    const card = await new DefaultAgentCardResolver().resolve(`${server}/a2a/echo/`);
    const client = await new ClientFactory({ transports: [new Factory({ fetchImpl })] }).createFromAgentCard(card);
    return Object.assign(new Sdk03(), { wire, client });
  }

  async *stream(text) {
    for await (const event of this.client.sendMessageStream(Sdk03.message(text))) {
      yield Sdk03.event(event);
    }
  }

  async *subscribe(task) {
    for await (const event of this.client.resubscribeTask({ id: task })) {
      yield Sdk03.event(event);
    }
  }

  async sendWithoutBlocking(text) {
    const params = { ...Sdk03.message(text), configuration: { blocking: false } };
    return Sdk03.event(await this.client.sendMessage(params, withTimeout()));
  }

  async get(task) {
    return Sdk03.event(await this.client.getTask({ id: task }));
  }

  async cancel(task) {
    return Sdk03.event(await this.client.cancelTask({ id: task }));
  }

  static message(text) {
    return {
      message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] },
    };
  }

  static event({ id, taskId, status }) {
    return { task: id ?? taskId, state: status.state };
  }
}

/** Options of a call that fails if there is no response in time. */
function withTimeout() {
  const limit = new AbortController();
  setTimeout(() => limit.abort(new Error('no response within 10 s')), 10_000).unref();
  return { signal: limit.signal };
}

/** Records the bytes of event streams. */
class Wire extends EventEmitter {
  received = '';

  async fetch(...request) {
    const response = await fetch(...request);
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      return response;
    }
    const decoder = new TextDecoder();
    const record = (chunk, controller) => {
      this.received += decoder.decode(chunk, { stream: true });
      this.emit('received');
      controller.enqueue(chunk);
    };
    return new Response(response.body.pipeThrough(new TransformStream({ transform: record })), response);
  }

  lines(start) {
    return this.received.split('\n').filter((line) => line.startsWith(start)).length;
  }

  /** Returns once this many more comments have arrived. */
  async keepAlives(more, signal) {
    const wanted = this.lines(':') + more;
    const arrivals = on(this, 'received', { signal });
    while (this.lines(':') < wanted) {
      await arrivals.next();
    }
    await arrivals.return();
  }
}

/** A stream of an SDK that is read in the background. */
export class Stream {
  events = [];
  arrivals = new EventEmitter();

  constructor(wire, events) {
    this.wire = wire;
    this.reading = this.read(events);
    // A failure is reported by the method that is called next.
    this.reading.catch(() => {});
  }

  async read(events) {
    for await (const event of events) {
      this.events.push(event);
      this.arrivals.emit('event');
    }
  }

  /** The id of the task, once the first event has arrived. */
  async task() {
    if (this.events.length === 0) {
      await this.whileOpen((signal) => once(this.arrivals, 'event', { signal }));
    }
    return this.events[0].task;
  }

  /** Returns once this many more comments have arrived; fails if the SDK closes the stream before. */
  async keepAlives(more) {
    await this.whileOpen((signal) => this.wire.keepAlives(more, signal));
  }

  /** The states in order, once the stream has ended; all belong to one task. */
  async states() {
    await this.reading;
    assert.equal(new Set(this.events.map(({ task }) => task)).size, 1);
    return this.events.map(({ state }) => state);
  }

  async whileOpen(wait) {
    const abort = new AbortController();
    const ended = this.reading.then(() => assert.fail(`the stream ended early, after ${this.wire.received}`));
    await Promise.race([wait(abort.signal), ended]).finally(() => abort.abort());
  }
}
