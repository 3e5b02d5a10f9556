// Subscribing to tasks that another client started: the snapshot first, then all later events.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import {
  assertEndsOnce,
  cancel,
  chunks,
  connect,
  fold,
  get,
  MODES,
  send,
  startTask,
  states,
  subscribe,
  texts,
  userMessage,
} from './helpers.js';

for (const mode of MODES) {
  test(`${mode.name}: second subscriber misses no event`, async () => {
    const sender = await connect('slow-writer', mode);
    const subscriber = await connect('slow-writer', mode);
    const sent = [];
    let joining;
    for await (const event of sender.sendMessageStream(userMessage('sections=10 delay=100ms'))) {
      sent.push(event.payload);
      if (!joining && chunks(sent).length === 2) {
        joining = subscribe(subscriber, sent[0].value);
      }
    }
    const joined = await joining;
    const live = joined.slice(1);
    assert.equal(joined[0].value.status.state, TaskState.TASK_STATE_WORKING);
    assert.ok(texts(joined[0].value).join('').length > 0);
    assert.deepEqual(live, sent.slice(-live.length));
    assertEndsOnce(joined, TaskState.TASK_STATE_COMPLETED);
    const stored = await get(subscriber, joined[0].value);
    assert.deepEqual(texts(fold(joined, mode)), texts(stored));
    assert.deepEqual(texts(fold(sent, mode)), texts(stored));
  });

  test(`${mode.name}: work continues after a disconnect and can be resubscribed`, async () => {
    const sender = await connect('slow-writer', mode);
    const subscriber = await connect('slow-writer', mode);
    let task;
    for await (const { payload } of sender.sendMessageStream(userMessage('sections=10 delay=100ms'))) {
      task ??= payload.value;
      if (payload.$case === 'artifactUpdate') {
        break;
      }
    }
    const joined = await subscribe(subscriber, task);
    assertEndsOnce(joined, TaskState.TASK_STATE_COMPLETED);
    assert.deepEqual(texts(fold(joined, mode)), texts(await get(sender, task)));
  });

  test(`${mode.name}: subscriber of a waiting task receives the next turn`, async () => {
    const sender = await connect('approver', mode);
    const task = await send(sender, userMessage('may I?'));
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const subscriber = await connect('approver', mode);
    const events = await subscribe(subscriber, task, () => send(sender, userMessage('approve', task)));
    assert.equal(events[0].value.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assertEndsOnce(events, TaskState.TASK_STATE_COMPLETED);
    assert.ok(!states(events).includes(TaskState.TASK_STATE_INPUT_REQUIRED));
    assert.deepEqual(fold(events).status, (await get(sender, task)).status);
  });

  test(`${mode.name}: subscriber receives a cancel by another client`, async () => {
    const sender = await connect('echo', mode);
    const task = await startTask('echo', 'hold until cancelled', mode);
    const subscriber = await connect('echo', mode);
    const events = await subscribe(subscriber, task, () => cancel(sender, task));
    assertEndsOnce(events, TaskState.TASK_STATE_CANCELED);
  });

  test(`${mode.name}: two subscribers receive the same events`, async () => {
    const subscribers = [await connect('slow-writer', mode), await connect('slow-writer', mode)];
    const task = await startTask('slow-writer', 'sections=10 delay=100ms', mode);
    const [one, other] = await Promise.all(subscribers.map((subscriber) => subscribe(subscriber, task)));
    const shorter = Math.min(one.length, other.length) - 1;
    assert.ok(shorter > 0);
    assert.deepEqual(one.slice(-shorter), other.slice(-shorter));
    assertEndsOnce(one, TaskState.TASK_STATE_COMPLETED);
    assert.deepEqual(texts(fold(one, mode)), texts(fold(other, mode)));
  });
}

test('subscribers of every version and binding receive the same task', async () => {
  const subscribers = await Promise.all(MODES.map((mode) => connect('slow-writer', mode)));
  const task = await startTask('slow-writer', 'sections=10 delay=100ms');
  const folded = await Promise.all(
    subscribers.map(async (subscriber, at) => fold(await subscribe(subscriber, task), MODES[at])),
  );
  const stored = await get(await connect('slow-writer'), task);
  for (const each of folded) {
    assert.deepEqual(each.status, stored.status);
    assert.deepEqual(texts(each), texts(stored));
  }
});
