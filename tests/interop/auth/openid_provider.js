// The OpenID provider of npm (`oidc-provider`) on loopback, which issues access tokens in the form of JWTs.
//
// The first argument is JSON: `keys` is a file with the private keys, which is written if it does not exist. `port` and
// `issuer` are those of an earlier process that this one replaces or imitates; `clock` is how many seconds its clock
// is ahead. The first line of the output is the URL.
//
// The last segment of a requested resource is the algorithm of the token, the one before it the audience.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'];

const { keys: file, port = 0, issuer, clock = 0 } = JSON.parse(process.argv[2]);

const systemTime = Date.now;
Date.now = () => systemTime() + clock * 1000;

async function privateKey(alg) {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(pair.privateKey)), alg, use: 'sig' };
}

async function keys() {
  if (!existsSync(file)) {
    writeFileSync(file, JSON.stringify(await Promise.all(ALGORITHMS.map(privateKey))), { mode: 0o600 });
  }
  return JSON.parse(readFileSync(file, 'utf8'));
}

function resourceServer(resource) {
  const [audience, alg] = new URL(resource).pathname.split('/').slice(-2);
  return { audience, scope: '', accessTokenTTL: 600, accessTokenFormat: 'jwt', jwt: { sign: { alg } } };
}

function client(name) {
  return {
    client_id: name,
    client_secret: `secret of ${name}`,
    token_endpoint_auth_method: 'client_secret_post',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  };
}

const configuration = {
  jwks: { keys: await keys() },
  clients: ['alice', 'bob'].map(client),
  enabledJWA: { idTokenSigningAlgValues: ALGORITHMS },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: { enabled: true, getResourceServerInfo: (_, resource) => resourceServer(resource) },
  },
};

const server = createServer();
server.listen(port, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  server.on('request', new Provider(issuer ?? url, configuration).callback());
  console.log(url);
});
