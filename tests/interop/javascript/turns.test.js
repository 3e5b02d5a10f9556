// A task that asks, is answered in a second message, and goes on under the same id.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Role, TaskState } from '@a2a-js/sdk';
import { ask, assertEndsOnce, collect, connect, get, say, MODES } from './talk.js';

const ANSWERS = [
  ['approve', TaskState.TASK_STATE_COMPLETED],
  ['deny', TaskState.TASK_STATE_REJECTED],
];

for (const mode of MODES) {
  for (const [answer, outcome] of ANSWERS) {
    test(`${mode.name}: ${answer} decides what becomes of the task`, async () => {
      const client = await connect('approver', mode);
      const question = say('please do it');
      const asked = await ask(client, question);
      assert.equal(asked.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
      assert.equal(asked.status.message.role, Role.ROLE_AGENT);
      assert.notEqual(asked.status.message.parts.length, 0);

      const reply = say(answer, asked);
      const decided = await ask(client, reply);
      assert.deepEqual([decided.id, decided.contextId], [asked.id, asked.contextId]);
      assert.equal(decided.status.state, outcome);
      const stored = await get(client, asked);
      assert.deepEqual(stored.status, decided.status);
      assert.deepEqual(
        stored.history.filter(({ role }) => role === Role.ROLE_USER).map(({ messageId }) => messageId),
        [question.message.messageId, reply.message.messageId],
      );
    });
  }

  test(`${mode.name}: the second turn can be streamed`, async () => {
    const client = await connect('approver', mode);
    const [first] = await collect(client.sendMessageStream(say('please do it')));
    const reply = say('approve', first.value);
    const second = await collect(client.sendMessageStream(reply));
    assert.equal(second[0].value.id, first.value.id);
    assert.equal(second[0].value.history.at(-1).messageId, reply.message.messageId);
    assertEndsOnce(second, TaskState.TASK_STATE_COMPLETED);
  });
}

test('a task can change versions and bindings between its turns', async () => {
  const clients = await Promise.all(MODES.map((mode) => connect('approver', mode)));
  for (const first of clients) {
    for (const second of clients) {
      const asked = await ask(first, say('please do it'));
      const decided = await ask(second, say('approve', asked));
      assert.deepEqual([decided.id, decided.status.state], [asked.id, TaskState.TASK_STATE_COMPLETED]);
    }
  }
});
