// Streams without events for a while: the SDK must not take a keep-alive for an event.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Server } from './server.js';
import { CLIENTS, open, SDKS, Stream } from './streams.js';

// Number of keep-alives that arrive while a stream has no events.
const QUIET = 4;
const LIVE = ['submitted', 'working'];
// Timeout after which a test counts as hung; no assertion depends on it.
const timeout = 30_000;

for (const kind of CLIENTS) {
  test(`${kind.name}: quiet stream is held over keep-alives`, { timeout }, async () => {
    const [sender, other] = [await open(kind), await open(kind)];
    const stream = new Stream(sender.wire, sender.stream('hold the stream'));
    await stream.keepAlives(QUIET);
    await other.cancel(await stream.task());
    assert.deepEqual(await stream.states(), ['submitted', 'working', 'canceled']);
  });

  test(`${kind.name}: quiet subscription is held over keep-alives`, { timeout }, async () => {
    const [subscriber, other] = [await open(kind), await open(kind)];
    const task = await startTask(other);
    const stream = new Stream(subscriber.wire, subscriber.subscribe(task));
    await stream.keepAlives(QUIET);
    await other.cancel(task);
    const [first, ...updates] = await stream.states();
    assert.ok(LIVE.includes(first));
    assert.deepEqual(
      updates.filter((state) => state !== 'working'),
      ['canceled'],
    );
  });

  test(`${kind.name}: send without blocking returns a live task`, { timeout }, async () => {
    const client = await open(kind);
    const { task, state } = await client.sendWithoutBlocking('hold the task');
    assert.ok(LIVE.includes(state));
    assert.ok(LIVE.includes((await client.get(task)).state));
    assert.deepEqual(await client.cancel(task), { task, state: 'canceled' });
    assert.deepEqual(await client.get(task), { task, state: 'canceled' });
  });
}

for (const sdk of SDKS) {
  // All clients of the SDK are tested in one drain, because a drain takes long.
  test(`SDK ${sdk}: streams end in a drain and are resumed after it`, { timeout }, async (t) => {
    const server = await Server.start();
    t.after(() => server.remove());
    const clients = [];
    for (const kind of CLIENTS.filter((each) => each.sdk === sdk)) {
      const [sender, subscriber] = [await open(kind, server.url), await open(kind, server.url)];
      const sent = new Stream(sender.wire, sender.stream('hold through the drain'));
      const task = await sent.task();
      const joined = new Stream(subscriber.wire, subscriber.subscribe(task));
      await joined.task();
      clients.push({ sender, subscriber, sent, joined, task });
    }

    // The first signal starts a drain, which waits for running tasks; the tasks of this test never finish. The second
    // signal ends the drain. A signal that follows too soon is ignored as a duplicate.
    server.terminate();
    await Promise.all(clients.flatMap(({ sent, joined }) => [sent.keepAlives(QUIET), joined.keepAlives(QUIET)]));
    server.terminate();
    for (const { sender, subscriber, sent, joined } of clients) {
      assert.deepEqual(await sent.states(), ['submitted', 'working']);
      assert.equal((await joined.states()).at(-1), 'working');
      // The drain ended the streams, not a lost connection.
      assert.deepEqual([sender.wire.lines('retry:'), subscriber.wire.lines('retry:')], [1, 1]);
    }
    assert.equal(await server.exitStatus(), 0);

    await server.start();
    const resume = async ({ sender, subscriber, task }) => {
      const resumed = new Stream(subscriber.wire, subscriber.subscribe(task));
      assert.equal(await resumed.task(), task);
      await resumed.keepAlives(QUIET);
      assert.deepEqual(await sender.cancel(task), { task, state: 'canceled' });
      assert.equal((await resumed.states()).at(-1), 'canceled');
    };
    await Promise.all(clients.map(resume));
  });
}

/** Creates a task and closes its stream. */
async function startTask(client) {
  for await (const { task } of client.stream('hold the task')) {
    return task;
  }
}
