// The program under test as a process that can be stopped and started again on the same store and port.
//
// `A2AD_PROGRAM` is the program and `A2AD_CONFIG` its configuration file.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, closeSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// Timeout after which a start counts as hung; no assertion depends on it.
const LIMIT_MILLIS = 30_000;

export class Server {
  /** A running server with its own store; `variables` change its configuration. */
  static async start(variables = {}) {
    const server = new Server();
    server.variables = variables;
    server.folder = mkdtempSync(join(tmpdir(), 'a2ad-interop-'));
    server.log = join(server.folder, 'a2ad.log');
    server.address = `127.0.0.1:${await freePort()}`;
    server.url = `http://${server.address}`;
    await server.start();
    return server;
  }

  /** Returns once the server is ready. */
  async start() {
    const store = join(this.folder, 'a2ad.db');
    const args = ['serve', '--listen', this.address, '--store', store, '--config', process.env.A2AD_CONFIG];
    const others = Object.entries(process.env).filter(([name]) => !name.startsWith('A2AD_'));
    const env = { ...Object.fromEntries(others), ...this.variables };
    const log = openSync(this.log, 'a');
    this.process = spawn(process.env.A2AD_PROGRAM, args, { env, stdio: ['ignore', log, log] });
    closeSync(log);
    this.exited = once(this.process, 'exit');
    const limit = Date.now() + LIMIT_MILLIS;
    while (!(await this.ready())) {
      const starting = this.process.exitCode === null && Date.now() < limit;
      assert.ok(starting, `the server did not start:\n${readFileSync(this.log, 'utf8')}`);
      await sleep(20);
    }
  }

  async ready() {
    try {
      return (await fetch(`${this.url}/readyz`)).ok;
    } catch {
      return false;
    }
  }

  terminate() {
    this.process.kill('SIGTERM');
  }

  async exitStatus() {
    const [status] = await this.exited;
    return status;
  }

  async remove() {
    this.process.kill('SIGKILL');
    await this.exited;
    rmSync(this.folder, { recursive: true });
  }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  return port;
}
