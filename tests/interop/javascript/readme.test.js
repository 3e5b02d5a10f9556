// The JavaScript program of the README runs as it is written, except for the server's address.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { url } from './helpers.js';

test('the program of the README', async () => {
  const readme = await readFile(new URL('../../README.md', pathToFileURL(process.env.A2AD_CONFIG)), 'utf8');
  const program = readme.split('```javascript\n')[1].split('```')[0].replace('http://127.0.0.1:4242', url);
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  assert.equal((await run).stdout, '10 USD is 854.90 INR.\n');
});
