// A task that requests input, receives it in a second message, and continues with the same id.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Role, TaskState } from '@a2a-js/sdk';
import { assertEndsOnce, collect, connect, get, MODES, send, userMessage } from './helpers.js';

const ANSWERS = [
  ['approve', TaskState.TASK_STATE_COMPLETED],
  ['deny', TaskState.TASK_STATE_REJECTED],
];

for (const mode of MODES) {
  for (const [answer, outcome] of ANSWERS) {
    test(`${mode.name}: ${answer} decides the final state`, async () => {
      const client = await connect('approver', mode);
      const question = userMessage('please do it');
      const waiting = await send(client, question);
      assert.equal(waiting.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
      assert.equal(waiting.status.message.role, Role.ROLE_AGENT);
      assert.notEqual(waiting.status.message.parts.length, 0);

      const reply = userMessage(answer, waiting);
      const finished = await send(client, reply);
      assert.deepEqual([finished.id, finished.contextId], [waiting.id, waiting.contextId]);
      assert.equal(finished.status.state, outcome);
      const stored = await get(client, waiting);
      assert.deepEqual(stored.status, finished.status);
      assert.deepEqual(
        stored.history.filter(({ role }) => role === Role.ROLE_USER).map(({ messageId }) => messageId),
        [question.message.messageId, reply.message.messageId],
      );
    });
  }

  test(`${mode.name}: second turn can be streamed`, async () => {
    const client = await connect('approver', mode);
    const [first] = await collect(client.sendMessageStream(userMessage('please do it')));
    const reply = userMessage('approve', first.value);
    const second = await collect(client.sendMessageStream(reply));
    assert.equal(second[0].value.id, first.value.id);
    assert.equal(second[0].value.history.at(-1).messageId, reply.message.messageId);
    assertEndsOnce(second, TaskState.TASK_STATE_COMPLETED);
  });
}

test('task can change versions and bindings between turns', async () => {
  const clients = await Promise.all(MODES.map((mode) => connect('approver', mode)));
  for (const first of clients) {
    for (const second of clients) {
      const waiting = await send(first, userMessage('please do it'));
      const finished = await send(second, userMessage('approve', waiting));
      assert.deepEqual([finished.id, finished.status.state], [waiting.id, TaskState.TASK_STATE_COMPLETED]);
    }
  }
});
