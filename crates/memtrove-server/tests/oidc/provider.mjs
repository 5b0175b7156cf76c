// A real OpenID Connect provider for tests: `node provider.mjs PORT`, with the packages in the folder $OIDC_PACKAGES.
// With `--leash` it ends when its standard input does, so that it never outlives the test that started it.
//
// - Every start makes new keys with new ids, so a restart is a key rotation.
// - Clients get JWT access tokens through client_credentials. The resource chooses audience and algorithm:
//   `urn:memtrove:RS256` → audience `memtrove`, signed with RS256; likewise ES256 and EdDSA. `urn:other` → audience `other`.
// - GET /requests answers how often the key set was fetched.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const packages = pathToFileURL(`${process.env.OIDC_PACKAGES}/node_modules/oidc-provider/lib/index.js`);
const { default: Provider } = await import(packages);

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;

// Who a client speaks for: client credentials have no user of their own.
const claims = {
  'alice-app': { preferred_username: 'alice', tenant: 'acme', realm_access: { roles: ['audit', 'other'] } },
  'bob-app': { preferred_username: 'bob' },
};

const key = (alg, type, options) => {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: randomUUID() };
};

const provider = new Provider(issuer, {
  clients: Object.keys(claims).map((id) => ({
    client_id: id,
    client_secret: 'secret',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  })),
  jwks: {
    keys: [
      key('RS256', 'rsa', { modulusLength: 2048 }),
      key('ES256', 'ec', { namedCurve: 'P-256' }),
      key('EdDSA', 'ed25519'),
    ],
  },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => {
        const [, audience, alg = 'RS256'] = resource.split(':');
        return {
          scope: 'read admin',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg } },
        };
      },
    },
  },
  extraTokenClaims: (_ctx, token) => claims[token.clientId],
});

let keyRequests = 0;
const answer = provider.callback();
const server = createServer((request, response) => {
  if (request.url === '/requests') {
    response.end(String(keyRequests));
    return;
  }
  if (request.url === '/jwks') keyRequests += 1;
  answer(request, response);
});
server.listen(port, '127.0.0.1', () => console.log(`ready ${issuer}`));
if (process.argv.includes('--leash')) {
  process.stdin.resume();
  process.stdin.on('end', () => process.exit());
}
