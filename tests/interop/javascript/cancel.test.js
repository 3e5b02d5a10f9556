// Cancellation: accepted once, final, and rejected afterwards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import { TaskNotCancelableError } from '@a2a-js/sdk/errors';
import { cancel, connect, get, MODES, send, startTask, TERMINAL, userMessage } from './helpers.js';

for (const mode of MODES) {
  test(`${mode.name}: canceled task stays canceled`, async () => {
    const client = await connect('echo', mode);
    const task = await startTask('echo', 'hold this', mode);
    assert.ok(!TERMINAL.includes(task.status.state));
    const canceled = await cancel(client, task);
    assert.deepEqual([canceled.id, canceled.status.state], [task.id, TaskState.TASK_STATE_CANCELED]);
    await assert.rejects(cancel(client, task), TaskNotCancelableError);
    assert.deepEqual((await get(client, task)).status, canceled.status);
  });

  test(`${mode.name}: waiting task can be canceled`, async () => {
    const client = await connect('approver', mode);
    const canceled = await cancel(client, await send(client, userMessage('may I?')));
    assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED);
  });

  test(`${mode.name}: finished task is not cancelable and unchanged`, async () => {
    const client = await connect('echo', mode);
    const task = await send(client, userMessage('done at once'));
    await assert.rejects(cancel(client, task), TaskNotCancelableError);
    assert.deepEqual(await get(client, task), task);
  });
}
