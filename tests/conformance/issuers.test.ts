// Tokens of trusted issuers: who they are, what they reach, how they are refused (api 1.5 to 1.7, 7.4 to 7.6).

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { NEWEST_PROTOCOL, Client, done, refused } from './support/client.ts';
import { KeySetServer, SigningKey, inSeconds } from './support/issuer.ts';
import { follow } from './support/sse.ts';
import { command, message, newAgent, newSession, openWorld, plainManifest, turn, typesOf } from './support/world.ts';

const ISSUER = 'https://id.example';
const keys = { rsa: new SigningKey('r', 'RS256'), ec: new SigningKey('p', 'ES256'), ed: new SigningKey('e', 'EdDSA') };
const keySet = new KeySetServer([keys.rsa, keys.ec, keys.ed]);
const silent = new KeySetServer([]);
const silentUrl = await silent.listen();
silent.close();

const folder = mkdtempSync(join(tmpdir(), 'nylorun-issuers-'));
const file = join(folder, 'identity.yaml');
writeFileSync(
    file,
    `issuers:
  - name: acme
    issuer: ${ISSUER}
    audience: nylorun
    jwks: ${await keySet.listen()}
    colour: red
  - name: narrow
    issuer: https://narrow.example
    audience: nylorun
    keys:
      - |
${keys.ed.pem.replace(/^/gm, '        ').trimEnd()}
    subject: "narrow:{tenant}:{sub}"
    scopes: { claim: roles }
    allowedScopes: [sessions:own, studio]
    agents: [only-this, "team-{team}"]
    sandboxes: ["{team}/*"]
  - name: away
    issuer: https://away.example
    audience: nylorun
    jwks: ${silentUrl}
`,
);
after(() => {
    keySet.close();
    rmSync(folder, { recursive: true, force: true });
});
const world = await openWorld('fixture', { NYLORUN_IDENTITY_FILE: file });
const METADATA = `resource_metadata="${world.server.url}/.well-known/oauth-protected-resource"`;

function claims(members: object = {}): object {
    const scope = 'openid agents:read sessions:own';
    return { iss: ISSUER, aud: 'nylorun', sub: 'ann', iat: inSeconds(0), exp: inSeconds(600), scope, ...members };
}

function withToken(token: string): Client {
    return new Client(world.server.url, { authorization: `Bearer ${token}`, 'nylorun-protocol': NEWEST_PROTOCOL });
}

/** A client of a person. */
function person(members: object = {}, key: SigningKey = keys.ec): Client {
    return withToken(key.token(claims(members)));
}

function narrow(members: object = {}): Client {
    const roles = ['sessions:own', 'agents:read', 'studio'];
    const own = { iss: 'https://narrow.example', tenant: 7, team: 'red', roles };
    return withToken(keys.ed.token(claims({ ...own, ...members }), { kid: undefined }));
}

test('api 1.6: tokens of each algorithm, from a key set and from keys in the file', async () => {
    for (const key of Object.values(keys)) {
        const me = done(await person({}, key).get('/v1/me'));
        const expected = { scopes: ['agents:read', 'sessions:own'], agents: '*', sandboxes: [], via: 'issuer:acme' };
        assert.deepEqual(me, { subject: 'ann', ...expected });
    }
    assert.deepEqual(done(await narrow().get('/v1/me')), {
        subject: 'narrow:7:ann',
        scopes: ['sessions:own', 'studio'],
        agents: ['only-this', 'team-red'],
        sandboxes: ['red/*'],
        via: 'issuer:narrow',
    });
});

test('api 1.6: a name in the file that means nothing is warned of', () => {
    assert.match(world.server.log(), /issuers\.0\.colour/);
});

test('api 1.6: a person runs a turn in a session of their own, and sees no others', async () => {
    const ann = person();
    const agentId = await newAgent(world.app);
    done(await ann.put('/v1/sessions/of-ann', { requestId: 'r', agentId, ownerUserId: 'ann' }));
    const events = await turn(ann, 'of-ann', 'hello');
    assert.deepEqual(typesOf(events), ['command.message', 'message.assistant', 'turn.completed']);
    const ofBob = await newSession(world.app, { ownerUserId: 'bob' });
    refused(await ann.get(`/v1/sessions/${ofBob}`), 404, 'request_rejected');
    const listed = async (query: string) =>
        done(await ann.get(`/v1/sessions${query}`)).sessions.map((session: any) => session.id);
    assert.deepEqual(await listed(''), ['of-ann']);
    assert.deepEqual(await listed('?limit=10'), ['of-ann']);
    refused(await ann.get('/v1/sessions?limit=10&ownerUserId=bob'), 403, 'request_rejected');
    const foreign = { requestId: 'r', agentId, ownerUserId: 'bob' };
    refused(await ann.put('/v1/sessions/new', foreign), 403, 'request_rejected');
});

test('api 2.1: a person sees names and descriptions of agents, and no manifest', async () => {
    const manifest = { ...plainManifest('named'), name: 'Helper', description: 'Helps.' };
    await newAgent(world.app, manifest);
    const { agents } = done(await person().get('/v1/agents'));
    assert.deepEqual(
        agents.find((agent: any) => agent.agentId === 'named'),
        { agentId: 'named', name: 'Helper', description: 'Helps.' },
    );
    const session = await newSession(world.app, { agentId: 'named' });
    const { details } = refused(await person().get(`/v1/sessions/${session}/manifest`), 403, 'scope_required');
    assert.deepEqual(details, { scopes: [] });
});

test('api 1.6: an agent beyond the token is as a missing one', async () => {
    await newAgent(world.app, plainManifest('only-this'));
    await newAgent(world.app, plainManifest('other'));
    const ownerUserId = 'narrow:7:ann';
    const open = (id: string, agentId: string) =>
        narrow().put(`/v1/sessions/${id}`, { requestId: 'r', agentId, ownerUserId });
    done(await open('narrow-1', 'only-this'));
    const other = refused(await open('narrow-2', 'other'), 404, 'request_rejected');
    const missing = refused(await open('narrow-2', 'missing'), 404, 'request_rejected');
    assert.deepEqual([other.message, missing.message], ['Definition not found', 'Definition not found']);
    await newSession(world.app, { agentId: 'other', ownerUserId });
    const { sessions } = done(await narrow().get('/v1/sessions'));
    assert.deepEqual(sessions.map((session: any) => session.id), ['narrow-1']);
    const page = done(await narrow().get('/v1/sessions?limit=5'));
    assert.deepEqual(page.sessions.map((session: any) => session.id), ['narrow-1']);
    const unseen = await newSession(world.app, { agentId: 'other', ownerUserId });
    for (const path of ['', '/items', '/events']) {
        const { message } = refused(await narrow().get(`/v1/sessions/${unseen}${path}`), 404, 'request_rejected');
        assert.equal(message, 'Session not found');
    }
    // Opened again with the very same body, it is still not there.
    const again = { requestId: 'r', agentId: 'other', ownerUserId };
    refused(await narrow().put(`/v1/sessions/${unseen}`, again), 404, 'request_rejected');
});

test('api 1.6: a session of an agent beyond the token is not named by one that shares its sandbox', async () => {
    const ownerUserId = 'narrow:7:ann';
    for (const agent of ['only-this', 'other']) await newAgent(world.app, plainManifest(agent));
    const hidden = await newSession(world.app, { agentId: 'other', ownerUserId, sandbox: {} });
    const seen = await newSession(world.app, { agentId: 'only-this', ownerUserId, sandbox: { session: hidden } });
    const path = `/v1/sessions/${seen}`;
    const [theirs, ours] = [done(await narrow().get(path)), done(await world.app.get(path))];
    assert.deepEqual([theirs.sandboxSource, theirs.sandboxOwnerId], ['shared', null]);
    assert.equal(ours.sandboxOwnerId, hidden);
    await command(world.app, hidden, message([{ delayMs: 600_000 }]));
    const busy = async (client: Client) =>
        refused(await client.post(`${path}/commands`, message('hi')), 409, 'sandbox_busy').message;
    assert.ok((await busy(world.app)).includes(hidden));
    const told = await busy(narrow());
    assert.ok(!told.includes(hidden) && told.includes('another session'), told);
    // Where the token sees it, it is named.
    const visible = await newSession(world.app, { agentId: 'only-this', ownerUserId, sandbox: {} });
    const sharer = await newSession(world.app, { agentId: 'only-this', ownerUserId, sandbox: { session: visible } });
    assert.equal(done(await narrow().get(`/v1/sessions/${sharer}`)).sandboxOwnerId, visible);
});

test('api 1.6: a person sets neither info nor a manifest of a message', async () => {
    const agentId = await newAgent(world.app);
    const body = { requestId: 'r', agentId, ownerUserId: 'ann', info: { a: 1 } };
    refused(await person().put('/v1/sessions/informed', body), 403, 'scope_required');
    const session = await newSession(world.app, { agentId });
    const variant = message('x', { manifest: plainManifest(agentId) });
    refused(await person().post(`/v1/sessions/${session}/commands`, variant), 403, 'scope_required');
    await command(person(), session, message('x'));
});

test('api 1.5: scopes of the route, and a challenge where a token could carry one', async () => {
    const none = person({ scope: 'openid' });
    const answer = await none.get('/v1/sessions');
    assert.deepEqual(refused(answer, 403, 'scope_required').details, { scopes: ['sessions:own'] });
    const challenge = `Bearer error="insufficient_scope", scope="sessions:own", ${METADATA}`;
    assert.equal(answer.headers.get('www-authenticate'), challenge);
    // The issuer may not grant it, no token carries it, or no scope reaches the route at all.
    const agentId = await newAgent(world.app);
    const save = { requestId: 'r', manifest: plainManifest(agentId), implementationVersion: '1' };
    for (const [client, method, path, body, scopes] of [
        [narrow(), 'GET', '/v1/agents', undefined, ['agents:read', 'agents:write']],
        [person(), 'PUT', `/v1/agents/${agentId}`, save, ['agents:write']],
        [person(), 'GET', '/v1/tenant', undefined, []],
        [person(), 'GET', '/v1/sessions/x/usage', undefined, []],
    ] as const) {
        const answer = await client.send(method, path, { body });
        assert.deepEqual(refused(answer, 403, 'scope_required').details, { scopes }, path);
        assert.equal(answer.headers.get('www-authenticate'), null, path);
    }
});

test('api 1.5: a token says itself for whom it is', async () => {
    for (const headers of [{ 'nylorun-subject': 'ann', 'nylorun-scopes': 'sessions:own' }, { 'nylorun-scopes': 'x' }]) {
        refused(await person().get('/v1/me', { headers }), 403, 'request_rejected');
    }
});

test('api 1.4: a browser is served with a token, and with nothing else', async () => {
    const headers = { origin: 'https://app.example' };
    done(await person().get('/v1/me', { headers }));
    refused(await world.app.get('/v1/me', { headers }), 403, 'origin_rejected');
    refused(await person().get('/health', { headers }), 403, 'origin_rejected');
    assert.equal((await person().get('/v1/me', { headers })).headers.get('access-control-allow-origin'), null);
});

const FORGED: [string, () => string][] = [
    ['alg none', () => keys.ec.token(claims(), { alg: 'none' })],
    ['HS256', () => keys.rsa.token(claims(), { alg: 'HS256' })],
    ['another algorithm than the key has', () => keys.rsa.token(claims(), { alg: 'ES256' })],
    ['jku', () => keys.ec.token(claims(), { jku: 'https://x.example' })],
    ['jwk', () => keys.ec.token(claims(), { jwk: keys.ec.jwk })],
    ['x5u', () => keys.ec.token(claims(), { x5u: 'https://x.example' })],
    ['x5c', () => keys.ec.token(claims(), { x5c: [] })],
    ['crit', () => keys.ec.token(claims(), { crit: ['exp'] })],
    ['a key that the issuer does not have', () => new SigningKey('p', 'ES256').token(claims())],
    ['another audience', () => keys.ec.token(claims({ aud: 'other' }))],
    ['no exp', () => keys.ec.token(claims({ exp: undefined }))],
    ['an iat in the future', () => keys.ec.token(claims({ iat: inSeconds(120) }))],
    ['an nbf in the future', () => keys.ec.token(claims({ nbf: inSeconds(120) }))],
    ['a reserved subject', () => keys.ec.token(claims({ sub: 'host' }))],
    ['no subject', () => keys.ec.token(claims({ sub: undefined }))],
    ['an issuer that is not trusted', () => keys.ec.token(claims({ iss: 'https://other.example' }))],
    ['too long', () => keys.ec.token(claims({ x: 'x'.repeat(12_300) }))],
];
for (const [name, token] of FORGED) {
    test(`api 1.6: a token with ${name} is credential_invalid`, async () => {
        const answer = await withToken(token()).get('/v1/me');
        refused(answer, 401, 'credential_invalid');
        assert.equal(answer.headers.get('www-authenticate'), `Bearer error="invalid_token", ${METADATA}`);
    });
}

test('api 1.6: an expired token is token_expired, after 30 seconds of tolerance', async () => {
    done(await person({ exp: inSeconds(-20) }).get('/v1/me'));
    const answer = await person({ exp: inSeconds(-40) }).get('/v1/me');
    refused(answer, 401, 'token_expired');
    const error = 'error="invalid_token", error_description="The access token expired"';
    assert.equal(answer.headers.get('www-authenticate'), `Bearer ${error}, ${METADATA}`);
    const management = await person({ exp: inSeconds(-40) }).get('/v1/tenant');
    refused(management, 401, 'token_expired');
});

test('api 1.6: an issuer whose keys cannot be fetched is issuer_unavailable', async () => {
    const answer = await person({ iss: 'https://away.example' }).get('/v1/me');
    refused(answer, 401, 'issuer_unavailable');
    assert.equal(answer.headers.get('www-authenticate'), `Bearer ${METADATA}`);
    assert.match(world.server.log(), /an issuer's keys cannot be fetched/);
});

test('api 1.6: unknown keys do not make the runtime ask again and again', async () => {
    done(await person().get('/v1/me'));
    const asked = keySet.asked;
    for (let attempt = 0; attempt < 20; attempt++) {
        const stranger = new SigningKey(`stranger-${attempt}`, 'EdDSA');
        refused(await withToken(stranger.token(claims())).get('/v1/me'), 401, 'credential_invalid');
    }
    assert.ok(keySet.asked <= asked + 1, `${keySet.asked - asked} times`);
});

test('api 1.7: challenges name the protected-resource document', async () => {
    const none = { headers: { authorization: null } };
    for (const path of ['/v1/agents', '/v1/me', '/v1/gone']) {
        const answer = await world.app.get(path, none);
        assert.equal(answer.headers.get('www-authenticate'), `Bearer ${METADATA}`, path);
    }
    const bare = await world.nobody.get('/v1/agents');
    refused(bare, 401, 'credential_required');
    assert.equal(bare.headers.get('www-authenticate'), `Bearer ${METADATA}`);
    assert.equal((await world.app.get('/v1/tenant', none)).headers.get('www-authenticate'), 'Bearer');
    const wrong = await withToken('f'.repeat(64)).get('/v1/tenant');
    assert.equal(wrong.headers.get('www-authenticate'), 'Bearer error="invalid_token"');
});

test('api 7.6: the protected-resource document, under any sub-path and from a browser', async () => {
    for (const path of ['', '/v1', '/v1/sessions/x']) {
        const headers = { origin: 'https://app.example' };
        const answer = await world.nobody.get(`/.well-known/oauth-protected-resource${path}`, { headers });
        assert.deepEqual(done(answer), {
            resource: world.server.url,
            authorization_servers: [ISSUER, 'https://narrow.example', 'https://away.example'],
            scopes_supported: ['agents:read', 'sessions:own', 'sandboxes:write'],
            bearer_methods_supported: ['header'],
            resource_name: 'Nylorun Runtime API',
        });
        assert.equal(answer.headers.get('cache-control'), 'no-cache');
    }
});

test('api 7.4: the keys of what the runtime signs need no credential, and a sent one is checked', async () => {
    const open = { headers: { authorization: null } };
    assert.deepEqual(done(await world.app.get('/v1/access/jwks', open)), { keys: [] });
    done(await person().get('/v1/access/jwks'));
    done(await world.management.get('/v1/access/jwks'));
    refused(await withToken('f'.repeat(64)).get('/v1/access/jwks'), 401, 'credential_invalid');
    refused(await world.nobody.get('/v1/access/jwks'), 426, 'protocol_unsupported');
});

test('api 1.6, 1.11: a stream ends when its token does, and says so; a new token goes on after it', async () => {
    const session = await newSession(world.app);
    const first = await turn(world.app, session, 'one');
    const exp = inSeconds(2);
    const brief = person({ exp });
    const seen = [];
    for await (const frame of follow(brief, session)) seen.push(frame);
    assert.ok(Date.now() >= exp * 1000, 'not before its time');
    assert.deepEqual(seen.map((frame) => frame.event), [...typesOf(first), 'nylorun.closed']);
    assert.deepEqual(seen.at(-1), { event: 'nylorun.closed', data: '{"reason":"token_expired"}' });
    // Within the tolerance requests are served; a stream ends at once.
    const late = [];
    for await (const frame of follow(person({ exp: inSeconds(-10) }), session)) late.push(frame.event);
    assert.deepEqual(late, ['nylorun.closed']);
    await turn(world.app, session, 'two');
    for await (const frame of follow(person(), session, { lastEventId: seen.at(-2)!.id! })) {
        assert.equal(frame.event, 'command.message');
        break;
    }
});
