// Streams on which nothing happens for a while: the SDK must not mistake what keeps them open for an event.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Server } from './server.js';
import { CLIENTS, open, SDKS, Stream } from './streams.js';

// How many keep-alives pass while a stream is quiet.
const QUIET = 4;
const LIVE = ['submitted', 'working'];
// How long a test may take before it counts as hung. No assertion depends on it.
const timeout = 30_000;

for (const kind of CLIENTS) {
  test(`${kind.name}: a quiet stream is held over keep-alives`, { timeout }, async () => {
    const [sender, other] = [await open(kind), await open(kind)];
    const stream = new Stream(sender.wire, sender.stream('hold the stream'));
    await stream.keepAlives(QUIET);
    await other.cancel(await stream.task());
    assert.deepEqual(await stream.states(), ['submitted', 'working', 'canceled']);
  });

  test(`${kind.name}: a quiet subscription is held over keep-alives`, { timeout }, async () => {
    const [subscriber, other] = [await open(kind), await open(kind)];
    const task = await begin(other);
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

  test(`${kind.name}: a send without blocking returns a live task`, { timeout }, async () => {
    const client = await open(kind);
    const { task, state } = await client.sendWithoutBlocking('hold the task');
    assert.ok(LIVE.includes(state));
    assert.ok(LIVE.includes((await client.get(task)).state));
    assert.deepEqual(await client.cancel(task), { task, state: 'canceled' });
    assert.deepEqual(await client.get(task), { task, state: 'canceled' });
  });
}

for (const sdk of SDKS) {
  // All clients of the SDK at once: a drain takes a while.
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

    // The first signal lets running work finish; nothing here ever does. The second one ends the drain, unless it
    // follows too soon to count as another one.
    server.terminate();
    await Promise.all(clients.flatMap(({ sent, joined }) => [sent.keepAlives(QUIET), joined.keepAlives(QUIET)]));
    server.terminate();
    for (const { sender, subscriber, sent, joined } of clients) {
      assert.deepEqual(await sent.states(), ['submitted', 'working']);
      assert.equal((await joined.states()).at(-1), 'working');
      // It was the drain that ended them, not a broken connection.
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

/** Makes a task and leaves its stream. */
async function begin(client) {
  for await (const { task } of client.stream('hold the task')) {
    return task;
  }
}
