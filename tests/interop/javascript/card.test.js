// The cards the SDK resolves lead its clients to the right agents, in the right version.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { ask, connect, say, texts, url, VERSIONS } from './talk.js';

const AGENTS = ['currency', 'echo', 'approver', 'slow-writer'];

for (const version of VERSIONS) {
  for (const agent of AGENTS) {
    test(`${version}: ${agent} has a card that leads to it`, async () => {
      const card = await (await connect(agent, { version })).getAgentCard();
      const [chosen] = card.supportedInterfaces.filter(
        (each) => each.protocolBinding === 'JSONRPC' && each.protocolVersion.startsWith(version),
      );
      assert.equal(chosen.url, `${url}/a2a/${agent}`);
      assert.ok(card.name && card.description && card.version);
      assert.equal(card.capabilities.streaming, true);
      assert.ok(card.defaultInputModes.includes('text/plain'));
      assert.ok(card.defaultOutputModes.includes('text/plain'));
      assert.notEqual(card.skills.length, 0);
      for (const skill of card.skills) {
        assert.ok(skill.id && skill.name && skill.description && skill.tags.length);
      }
    });
  }
}

test('the card at the root leads to the default agent', async () => {
  const client = await new ClientFactory().createFromUrl(url);
  assert.equal(client.protocolVersion, '1.0');
  const task = await ask(client, say('echo by the root'));
  assert.deepEqual(texts(task), ['echo by the root']);
});

test('a client that knows both versions takes the newer one', async () => {
  const legacyCompat = { enabled: true };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
  });
  assert.equal((await factory.createFromUrl(url)).protocolVersion, '1.0');
});

test('a client that asks for the card of 0.3 gets one of 0.3 alone', async () => {
  const legacyCompat = { enabled: true };
  const asking = (target) => fetch(target, { headers: { 'A2A-Version': '0.3' } });
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat, fetchImpl: asking }),
  });
  assert.equal((await factory.createFromUrl(url)).protocolVersion, '0.3');
});
