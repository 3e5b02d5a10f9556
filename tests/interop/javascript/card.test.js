// The SDK resolves each agent card, and its clients reach the right agent in the right version.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { ExtendedAgentCardNotConfiguredError } from '@a2a-js/sdk/errors';
import { connect, MODES, send, texts, url, userMessage } from './helpers.js';

const AGENTS = ['currency', 'echo', 'approver', 'slow-writer'];

for (const mode of MODES) {
  for (const agent of AGENTS) {
    test(`${mode.name}: ${agent} has a card with its URLs`, async () => {
      const card = await (await connect(agent, mode)).getAgentCard();
      const [chosen] = card.supportedInterfaces.filter(
        (each) => each.protocolBinding === mode.binding && each.protocolVersion.startsWith(mode.version),
      );
      assert.equal(chosen.url, mode.binding === 'GRPC' ? url.replace('http://', '') : `${url}/a2a/${agent}`);
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

for (const transports of [undefined, [new GrpcTransportFactory()]]) {
  test(`root card leads to the default agent${transports ? ' over gRPC' : ''}`, async () => {
    const client = await new ClientFactory(transports && { transports }).createFromUrl(url);
    assert.equal(client.protocolVersion, '1.0');
    const task = await send(client, userMessage('echo by the root'));
    assert.deepEqual(texts(task), ['echo by the root']);
  });
}

for (const mode of MODES) {
  test(`${mode.name}: extended card has more skills`, async () => {
    const client = await connect('club', mode);
    const ids = ({ skills }) => skills.map(({ id }) => id);
    assert.deepEqual(ids(client.agentCard), ['echo']);
    assert.deepEqual(ids(await client.getAgentCard()), ['echo', 'approver']);
  });

  test(`${mode.name}: missing extended card is rejected with its own error`, async () => {
    const client = await connect('promise', mode);
    await assert.rejects(client.getAgentCard(), ExtendedAgentCardNotConfiguredError);
  });
}

test('client of both versions selects the newer one', async () => {
  const legacyCompat = { enabled: true };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
  });
  assert.equal((await factory.createFromUrl(url)).protocolVersion, '1.0');
});

test('request for the card of 0.3 gets a card with 0.3 only', async () => {
  const legacyCompat = { enabled: true };
  const fetchAs03 = (target) => fetch(target, { headers: { 'A2A-Version': '0.3' } });
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat, fetchImpl: fetchAs03 }),
  });
  assert.equal((await factory.createFromUrl(url)).protocolVersion, '0.3');
});
