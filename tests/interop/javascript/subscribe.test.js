// Subscribing to tasks somebody else started: the snapshot first, then everything that follows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import {
  ask,
  assertEndsOnce,
  cancel,
  chunks,
  connect,
  fold,
  get,
  say,
  states,
  texts,
  VERSIONS,
  watch,
} from './talk.js';

for (const version of VERSIONS) {
  test(`${version}: a second client joins a running stream and misses nothing`, async () => {
    const sender = await connect('slow-writer', { version });
    const joiner = await connect('slow-writer', { version });
    const sent = [];
    let joining;
    for await (const event of sender.sendMessageStream(say('sections=10 delay=50ms'))) {
      sent.push(event.payload);
      if (!joining && chunks(sent).length === 2) {
        joining = watch(joiner, sent[0].value);
      }
    }
    const joined = await joining;
    const live = joined.slice(1);
    assert.equal(joined[0].value.status.state, TaskState.TASK_STATE_WORKING);
    assert.ok(texts(joined[0].value).join('').length > 0);
    assert.deepEqual(live, sent.slice(-live.length));
    assertEndsOnce(joined, TaskState.TASK_STATE_COMPLETED);
    const stored = await get(joiner, joined[0].value);
    assert.deepEqual(texts(fold(joined)), texts(stored));
    assert.deepEqual(texts(fold(sent)), texts(stored));
  });

  test(`${version}: work goes on when its client leaves and can be joined again`, async () => {
    const leaver = await connect('slow-writer', { version });
    let task;
    for await (const { payload } of leaver.sendMessageStream(say('sections=6 delay=50ms'))) {
      task ??= payload.value;
      if (payload.$case === 'artifactUpdate') {
        break;
      }
    }
    const joined = await watch(await connect('slow-writer', { version }), task);
    assertEndsOnce(joined, TaskState.TASK_STATE_COMPLETED);
    assert.deepEqual(texts(fold(joined)), texts(await get(leaver, task)));
  });

  test(`${version}: a subscriber of a waiting task sees the next turn`, async () => {
    const asker = await connect('approver', { version });
    const task = await ask(asker, say('may I?'));
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const watcher = await connect('approver', { version });
    const events = await watch(watcher, task, () => ask(asker, say('approve', task)));
    assert.equal(events[0].value.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assertEndsOnce(events, TaskState.TASK_STATE_COMPLETED);
    assert.ok(!states(events).includes(TaskState.TASK_STATE_INPUT_REQUIRED));
    assert.deepEqual(fold(events).status, (await get(asker, task)).status);
  });

  test(`${version}: a subscriber sees the cancel of another`, async () => {
    const holder = await connect('echo', { version, polling: true });
    const task = await ask(holder, say('hold until cancelled'));
    const watcher = await connect('echo', { version });
    const events = await watch(watcher, task, () => cancel(holder, task));
    assertEndsOnce(events, TaskState.TASK_STATE_CANCELED);
  });

  test(`${version}: two subscribers see the same events`, async () => {
    const sender = await connect('slow-writer', { version, polling: true });
    const task = await ask(sender, say('sections=5 delay=50ms'));
    const watchers = [await connect('slow-writer', { version }), await connect('slow-writer', { version })];
    const [one, other] = await Promise.all(watchers.map((watcher) => watch(watcher, task)));
    const shorter = Math.min(one.length, other.length) - 1;
    assert.ok(shorter > 0);
    assert.deepEqual(one.slice(-shorter), other.slice(-shorter));
    assertEndsOnce(one, TaskState.TASK_STATE_COMPLETED);
    assert.deepEqual(texts(fold(one)), texts(fold(other)));
  });
}

test('subscribers of both versions see one task alike', async () => {
  const sender = await connect('slow-writer', { polling: true });
  const task = await ask(sender, say('sections=5 delay=50ms'));
  const watchers = await Promise.all(VERSIONS.map((version) => connect('slow-writer', { version })));
  const told = (await Promise.all(watchers.map((watcher) => watch(watcher, task)))).map(fold);
  const stored = await get(sender, task);
  for (const each of told) {
    assert.deepEqual(each.status, stored.status);
    assert.deepEqual(texts(each), texts(stored));
  }
});
