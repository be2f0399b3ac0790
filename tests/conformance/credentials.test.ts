// Credentials, roles, subjects and scopes (api 1.5, 1.7, 7.5).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { rawRequest } from './support/raw.ts';
import { newAgent, newSession, plainManifest, openWorld } from './support/world.ts';

const world = await openWorld('none');

const WRONG_KEY = 'f'.repeat(64);
const SCOPES = ['agents:read', 'agents:write', 'sessions:own', 'sandboxes:write'];

test('api 1.3: the scheme is read in any case, with spaces around the key', async () => {
    const key = world.server.applicationKey;
    for (const value of [`bearer ${key}`, `BEARER ${key}`, `Bearer    ${key}  `]) {
        done(await world.app.get('/v1/me', { headers: { authorization: value } }));
    }
});

test('api 1.3: any other form of Authorization is no credential', async () => {
    const key = world.server.applicationKey;
    for (const value of ['Bearer', `Basic ${key}`, key, `Bearer ${key} x`, `Bearer\t${key}`, `Bearer${key}`]) {
        refused(await world.app.get('/v1/me', { headers: { authorization: value } }), 401, 'credential_required');
    }
});

test('api 1.5: an unknown key, and a token of no trusted issuer, are credential_invalid', async () => {
    const upper = world.server.applicationKey.toUpperCase();
    for (const token of [WRONG_KEY, 'x', 'a.b.c', 'eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.x', `${WRONG_KEY}0`, upper]) {
        refused(
            await world.app.get('/v1/me', { headers: { authorization: `Bearer ${token}` } }),
            401,
            'credential_invalid',
        );
    }
});

test('api 1.4: a key from a browser is origin_rejected before the key is looked up; a token is not', async () => {
    const origin = { origin: 'https://app.example' };
    refused(await world.app.get('/v1/me', { headers: origin }), 403, 'origin_rejected');
    const wrong = { ...origin, authorization: `Bearer ${WRONG_KEY}` };
    refused(await world.app.get('/v1/me', { headers: wrong }), 403, 'origin_rejected');
    const token = { ...origin, authorization: 'Bearer a.b.c' };
    refused(await world.app.get('/v1/me', { headers: token }), 401, 'credential_invalid');
});

test('api 1.7: challenges without a trusted issuer have no resource_metadata', async () => {
    for (const client of [world.app, world.management]) {
        for (const path of ['/v1/agents', '/v1/tenant']) {
            const none = await client.get(path, { headers: { authorization: null } });
            assert.equal(none.headers.get('www-authenticate'), 'Bearer');
            const wrong = await client.get(path, { headers: { authorization: `Bearer ${WRONG_KEY}` } });
            assert.equal(wrong.headers.get('www-authenticate'), 'Bearer error="invalid_token"');
        }
    }
});

test('api 1.5: a management key reaches /v1/tenant/* and /v1/me only; an application key the rest', async () => {
    for (const path of ['/v1/agents', '/v1/sessions', '/v1/sessions/x', '/v1/sessions/x/events']) {
        refused(await world.management.get(path), 403, 'key_role_mismatch');
    }
    for (const path of [
        '/v1/tenant',
        '/v1/tenant/keys',
        '/v1/tenant/model',
        '/v1/tenant/models',
        '/v1/tenant/providers',
    ]) {
        refused(await world.app.get(path), 403, 'key_role_mismatch');
    }
});

test('api 3: an application key for a person on a management route is key_role_mismatch', async () => {
    refused(await world.person('ann').get('/v1/tenant'), 403, 'key_role_mismatch');
});

test('api 1.5: the role of the key is judged before its subject headers', async () => {
    const headers = { 'nylorun-scopes': 'sessions:own' };
    refused(await world.app.get('/v1/tenant', { headers }), 403, 'key_role_mismatch');
    refused(await world.management.get('/v1/agents', { headers }), 403, 'key_role_mismatch');
});

test('api 1.5: a management key acts only as itself: subject headers are 403 subject_invalid', async () => {
    for (const headers of [{ 'nylorun-subject': 'ann' }, { 'nylorun-scopes': 'sessions:own' }]) {
        refused(await world.management.get('/v1/tenant', { headers }), 403, 'subject_invalid');
        refused(await world.management.get('/v1/me', { headers }), 403, 'subject_invalid');
    }
});

const BAD_SUBJECTS = ['host', 'installation', 'x'.repeat(201), ''];
const GOOD_SUBJECTS = ['a', 'ann', 'Ann Lee', 'x'.repeat(200), '!~', 'user@example.com', 'Host'];

test('api 1.5: the grammar of subjects', async () => {
    const as = (subject: string) => world.person(subject).get('/v1/me');
    for (const subject of GOOD_SUBJECTS) assert.equal(done(await as(subject)).subject, subject);
    for (const subject of BAD_SUBJECTS) refused(await as(subject), 400, 'subject_invalid');
});

test('api 1.5: at least one scope, known ones only', async () => {
    const as = (scopes: string | null) =>
        world.app.get('/v1/me', {
            headers: { 'nylorun-subject': 'ann', ...(scopes === null ? {} : { 'nylorun-scopes': scopes }) },
        });
    for (const scopes of [null, '', ' ', 'sessions:any', 'sessions:own agents:delete', 'Sessions:Own']) {
        refused(await as(scopes), 400, 'subject_invalid');
    }
    assert.deepEqual(done(await as('agents:read  sessions:own')).scopes, ['agents:read', 'sessions:own']);
});

test('api 1.5: retired scopes are tolerated and grant nothing', async () => {
    const person = world.person('ann', 'vaults:own tenant:settings');
    refused(await person.get('/v1/sessions'), 403, 'scope_required');
    refused(await person.get('/v1/agents'), 403, 'scope_required');
});

test('api 1.5: scopes without a subject are 400', async () => {
    refused(await world.app.get('/v1/me', { headers: { 'nylorun-scopes': 'sessions:own' } }), 400, 'subject_invalid');
});

test('api 1.3: subject headers may each be sent once', async () => {
    const { host } = new URL(world.server.url);
    const lines = [`Host: ${host}`, `Authorization: Bearer ${world.server.applicationKey}`, 'Nylorun-Protocol: 10'];
    for (const twice of [
        ['Nylorun-Subject: ann', 'Nylorun-Subject: ann', 'Nylorun-Scopes: sessions:own'],
        ['Nylorun-Subject: ann', 'Nylorun-Scopes: sessions:own', 'Nylorun-Scopes: agents:read'],
    ]) {
        const answer = await rawRequest(world.server.url, ['GET /v1/me HTTP/1.1', ...lines, ...twice]);
        assert.deepEqual([answer.status, answer.body.code], [400, 'subject_invalid']);
    }
});

test('api 1.5: a person needs any one of the scopes of a route, and is told which', async () => {
    const routes: [string, string, string[]][] = [
        ['GET', '/v1/agents', ['agents:read', 'agents:write']],
        ['PUT', '/v1/agents/a', ['agents:write']],
        ['GET', '/v1/sessions', ['sessions:own']],
        ['PUT', '/v1/sessions/a', ['sessions:own']],
        ['GET', '/v1/sessions/a', ['sessions:own']],
        ['POST', '/v1/sessions/a/commands', ['sessions:own']],
        ['GET', '/v1/sessions/a/items', ['sessions:own']],
        ['GET', '/v1/sessions/a/events', ['sessions:own']],
        ['GET', '/v1/sessions/a/manifest', ['agents:read', 'agents:write']],
        ['POST', '/v1/sessions/a/sandbox/bash', []],
        ['POST', '/v1/sessions/a/effects/e/settle', []],
    ];
    for (const [method, path, scopes] of routes) {
        const other = SCOPES.filter((scope) => !scopes.includes(scope));
        const answer = await world.person('ann', other.join(' ')).send(method, path);
        assert.deepEqual(refused(answer, 403, 'scope_required').details, { scopes }, `${method} ${path}`);
        for (const scope of scopes) {
            const { status, body } = await world.person('ann', scope).send(method, path);
            assert.notEqual(body?.code, 'scope_required', `${method} ${path} with ${scope} answered ${status}`);
        }
    }
});

test('api 7.5: /v1/me of an application, a person and a management key', async () => {
    const me = async (client: typeof world.app) => done(await client.get('/v1/me'));
    assert.deepEqual(await me(world.app), { scopes: SCOPES, agents: '*', via: 'application:local' });
    const person = { subject: 'ann', scopes: ['agents:read'], agents: '*', via: 'subject' };
    assert.deepEqual(await me(world.person('ann', 'agents:read')), person);
    assert.equal((await me(world.management)).via, 'management:local-management');
});

test("api 2.2: another owner's session is missing for a person, on every route of it", async () => {
    const session = await newSession(world.app, { ownerUserId: 'bob' });
    const person = world.person('ann', SCOPES.join(' '));
    const cancel = { type: 'cancel', requestId: 'r', idempotencyKey: 'k' };
    for (const answer of [
        await person.get(`/v1/sessions/${session}`),
        await person.get(`/v1/sessions/${session}/items`),
        await person.get(`/v1/sessions/${session}/events`),
        await person.get(`/v1/sessions/${session}/manifest`),
        await person.post(`/v1/sessions/${session}/commands`, cancel),
    ]) {
        assert.equal(refused(answer, 404, 'request_rejected').message, 'Session not found');
    }
});

test('api 2.2: a person opens only own sessions, and sees only own ones in the list', async () => {
    const agentId = await newAgent(world.app, plainManifest('shared'));
    const person = world.person('cleo', 'sessions:own');
    const open = (id: string, ownerUserId: string) =>
        person.put(`/v1/sessions/${id}`, { requestId: 'r', agentId, ownerUserId });
    refused(await open('cleo-1', 'bob'), 403, 'request_rejected');
    done(await open('cleo-2', 'cleo'));
    await newSession(world.app, { ownerUserId: 'bob' });
    const { sessions } = done(await person.get('/v1/sessions'));
    assert.deepEqual(
        sessions.map((session: any) => session.id),
        ['cleo-2'],
    );
});
