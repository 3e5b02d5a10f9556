// Streaming sends: the task first, then every event, then the end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import { assertEndsOnce, chunks, collect, connect, fold, get, MODES, states, texts, userMessage } from './helpers.js';

for (const mode of MODES) {
  test(`${mode.name}: stream starts with the task and ends with its final status`, async () => {
    const client = await connect('echo', mode);
    const request = userMessage('stream this');
    const events = await collect(client.sendMessageStream(request));
    const first = events[0].value;
    assert.ok([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING].includes(first.status.state));
    assert.deepEqual(
      first.history.map(({ messageId }) => messageId),
      [request.message.messageId],
    );
    assert.equal(first.artifacts.length, 0);
    assert.equal(chunks(events).length, 1);
    assertEndsOnce(events, TaskState.TASK_STATE_COMPLETED);

    const [folded, stored] = [fold(events), await get(client, first)];
    assert.deepEqual(folded.status, stored.status);
    assert.deepEqual(folded.artifacts, stored.artifacts);
    assert.deepEqual(texts(stored), ['stream this']);
  });

  test(`${mode.name}: chunks of an artifact merge to the stored artifact`, async () => {
    const client = await connect('slow-writer', mode);
    const events = await collect(client.sendMessageStream(userMessage('sections=4 delay=20ms')));
    const written = chunks(events);
    assert.ok(written.length >= 4);
    assert.equal(new Set(written.map(({ artifact }) => artifact.artifactId)).size, 1);
    if (!mode.lossy) {
      assert.deepEqual(
        written.map(({ append }) => append),
        written.map((_, at) => at > 0),
      );
    }
    assert.deepEqual(
      written.map(({ lastChunk }) => lastChunk),
      written.map((_, at) => at === written.length - 1),
    );
    assertEndsOnce(events, TaskState.TASK_STATE_COMPLETED);

    const folded = fold(events, mode);
    const stored = await get(client, folded);
    assert.deepEqual(folded.status, stored.status);
    assert.deepEqual(texts(folded), texts(stored));
    assert.ok(texts(stored)[0].length > 0);
  });

  test(`${mode.name}: stream ends when input is required`, async () => {
    const client = await connect('approver', mode);
    const events = await collect(client.sendMessageStream(userMessage('may I?')));
    assert.equal(states(events).at(-1), TaskState.TASK_STATE_INPUT_REQUIRED);
    assert.notEqual(fold(events).status.message.parts.length, 0);
  });
}
