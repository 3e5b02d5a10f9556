// Chromium, web sites whose pages call the server, and a recorder of the requests that reach the server.
//
// `CHROMIUM` is the path of the browser. Every name below `.test` resolves to loopback in it.

import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

// Timeout after which a test counts as hung; no assertion depends on it.
const LIMIT_MILLIS = 20_000;

/** A new Chromium with its own empty profile. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    timeout: 2 * LIMIT_MILLIS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-proxy-server',
      '--host-resolver-rules=MAP *.test 127.0.0.1',
    ],
  });
}

/** A page in its own context, without cookies and cache of others. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(LIMIT_MILLIS);
  return context.newPage();
}

/** A site with one empty page; returns its port on loopback. */
export async function serveSite() {
  const html = '<!doctype html><title>site</title><link rel="icon" href="data:,">';
  return listen((_, response) => response.setHeader('Content-Type', 'text/html').end(html));
}

/** Forwards requests to a server unchanged and records them with the status of the response. */
export class Recorder {
  #exchanges = [];

  static async start(server) {
    const recorder = new Recorder();
    const { port } = new URL(server);
    const site = await listen((incoming, outgoing) => recorder.#forward(port, incoming, outgoing));
    return Object.assign(recorder, site);
  }

  #forward(port, incoming, outgoing) {
    const { method, url: path, rawHeaders, headers } = incoming;
    const exchange = { method, path, origin: headers.origin, status: undefined };
    // The browser asks for the icon of some pages by itself.
    if (path !== '/favicon.ico') this.#exchanges.push(exchange);
    const forwarded = request({ host: '127.0.0.1', port, method, path, headers: rawHeaders, setHost: false });
    forwarded.on('response', (response) => {
      exchange.status = response.statusCode;
      outgoing.writeHead(response.statusCode, response.rawHeaders);
      response.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  }

  /** Waits until there are `count` requests and every one has a response; returns and forgets them. */
  async take(count = 1) {
    const limit = Date.now() + LIMIT_MILLIS;
    while (this.#exchanges.length < count || this.#exchanges.some(({ status }) => !status)) {
      if (Date.now() > limit) throw new Error(`no response for ${JSON.stringify(this.#exchanges)}`);
      await sleep(10);
    }
    return this.#exchanges.splice(0);
  }
}

async function listen(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: server.address().port, close };
}
