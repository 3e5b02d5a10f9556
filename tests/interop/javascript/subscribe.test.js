// Subscribing to tasks somebody else started: the snapshot first, then everything that follows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import {
  ask,
  assertEndsOnce,
  begin,
  cancel,
  chunks,
  connect,
  fold,
  get,
  say,
  states,
  texts,
  MODES,
  watch,
} from './talk.js';

for (const mode of MODES) {
  test(`${mode.name}: a second client joins a running stream and misses nothing`, async () => {
    const sender = await connect('slow-writer', mode);
    const joiner = await connect('slow-writer', mode);
    const sent = [];
    let joining;
    for await (const event of sender.sendMessageStream(say('sections=10 delay=100ms'))) {
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
    assert.deepEqual(texts(fold(joined, mode)), texts(stored));
    assert.deepEqual(texts(fold(sent, mode)), texts(stored));
  });

  test(`${mode.name}: work goes on when its client leaves and can be joined again`, async () => {
    const leaver = await connect('slow-writer', mode);
    const joiner = await connect('slow-writer', mode);
    let task;
    for await (const { payload } of leaver.sendMessageStream(say('sections=10 delay=100ms'))) {
      task ??= payload.value;
      if (payload.$case === 'artifactUpdate') {
        break;
      }
    }
    const joined = await watch(joiner, task);
    assertEndsOnce(joined, TaskState.TASK_STATE_COMPLETED);
    assert.deepEqual(texts(fold(joined, mode)), texts(await get(leaver, task)));
  });

  test(`${mode.name}: a subscriber of a waiting task sees the next turn`, async () => {
    const asker = await connect('approver', mode);
    const task = await ask(asker, say('may I?'));
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const watcher = await connect('approver', mode);
    const events = await watch(watcher, task, () => ask(asker, say('approve', task)));
    assert.equal(events[0].value.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assertEndsOnce(events, TaskState.TASK_STATE_COMPLETED);
    assert.ok(!states(events).includes(TaskState.TASK_STATE_INPUT_REQUIRED));
    assert.deepEqual(fold(events).status, (await get(asker, task)).status);
  });

  test(`${mode.name}: a subscriber sees the cancel of another`, async () => {
    const holder = await connect('echo', mode);
    const task = await begin('echo', 'hold until cancelled', mode);
    const watcher = await connect('echo', mode);
    const events = await watch(watcher, task, () => cancel(holder, task));
    assertEndsOnce(events, TaskState.TASK_STATE_CANCELED);
  });

  test(`${mode.name}: two subscribers see the same events`, async () => {
    const watchers = [await connect('slow-writer', mode), await connect('slow-writer', mode)];
    const task = await begin('slow-writer', 'sections=10 delay=100ms', mode);
    const [one, other] = await Promise.all(watchers.map((watcher) => watch(watcher, task)));
    const shorter = Math.min(one.length, other.length) - 1;
    assert.ok(shorter > 0);
    assert.deepEqual(one.slice(-shorter), other.slice(-shorter));
    assertEndsOnce(one, TaskState.TASK_STATE_COMPLETED);
    assert.deepEqual(texts(fold(one, mode)), texts(fold(other, mode)));
  });
}

test('subscribers of every version and binding see one task alike', async () => {
  const watchers = await Promise.all(MODES.map((mode) => connect('slow-writer', mode)));
  const task = await begin('slow-writer', 'sections=10 delay=100ms');
  const told = await Promise.all(watchers.map(async (watcher, at) => fold(await watch(watcher, task), MODES[at])));
  const stored = await get(await connect('slow-writer'), task);
  for (const each of told) {
    assert.deepEqual(each.status, stored.status);
    assert.deepEqual(texts(each), texts(stored));
  }
});
