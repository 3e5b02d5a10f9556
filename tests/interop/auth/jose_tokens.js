// Makes keys, signs and verifies tokens with the npm package `jose`.
//
// The first argument is a JSON list of steps; the output is a JSON list with the result of each. Keys are JSON Web Keys.

import * as jose from 'jose';

const STEPS = {
  async generate({ alg, kid }) {
    const pair = await jose.generateKeyPair(alg, { extractable: true });
    return { ...(await jose.exportJWK(pair.privateKey)), alg, kid };
  },
  async sign({ header, claims, key }) {
    return new jose.SignJWT(claims).setProtectedHeader(header).sign(await jose.importJWK(key, header.alg));
  },
  async unsecured({ claims }) {
    return new jose.UnsecuredJWT(claims).encode();
  },
  async verify({ token, key, options }) {
    const verified = await jose.jwtVerify(token, await jose.importJWK(key, key.alg), options);
    return { header: verified.protectedHeader, claims: verified.payload };
  },
};

const results = [];
for (const { step, ...input } of JSON.parse(process.argv[2])) {
  results.push(await STEPS[step](input));
}
console.log(JSON.stringify(results));
