// Sessions: opening, the view, the pinned manifest (api 2.2, 2.3).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import { command, fresh, message, newAgent, newSession, turn, openWorld } from './support/world.ts';

const world = await openWorld();

async function bodyOf(members: object = {}): Promise<any> {
    return { requestId: 'r', agentId: await newAgent(world.app), ownerUserId: 'ann', ...members };
}

test('api 2.2: an opened session is idle, and GET shows what PUT answered', async () => {
    const id = fresh('session');
    const body = await bodyOf();
    const view = done(await world.app.put(`/v1/sessions/${id}`, body));
    const { manifestHash, ...rest } = view;
    assert.match(manifestHash, /^[0-9a-f]{64}$/);
    assert.deepEqual(rest, {
        id,
        agentId: body.agentId,
        ownerUserId: 'ann',
        implementationVersion: '1',
        status: 'idle',
        activeTurnId: null,
        vaultIds: [],
        credentialSelections: [],
        sandboxOwnerId: null,
        sandbox: null,
        mcpSnapshot: null,
        mcpDiagnostics: [],
        uncertainEffects: [],
    });
    assert.deepEqual(done(await world.app.get(`/v1/sessions/${id}`)), view);
});

test('api 2.2: a re-PUT is compared without requestId, vaultIds and credentialSelections', async () => {
    const id = fresh('session');
    const body = await bodyOf({ info: { a: 1, b: [2.0] } });
    const open = (members: object) => world.app.put(`/v1/sessions/${id}`, { ...body, ...members });
    const first = done(await open({}));
    assert.deepEqual(done(await open({ requestId: 'other' })), first);
    assert.deepEqual(done(await open({ vaultIds: [], credentialSelections: [] })), first);
    assert.deepEqual(done(await open({ info: { b: [2], a: 1 } })), first);
    for (const other of [{ info: { a: 2 } }, { info: undefined }, { sandbox: {} }, { sandbox: false }]) {
        refused(await open(other), 409, 'request_rejected');
    }
    refused(await open({ agentId: await newAgent(world.app) }), 409, 'request_rejected');
});

test("decisions, Small print: another owner's PUT is 409 for the application, 404 for a person", async () => {
    const id = fresh('session');
    const body = await bodyOf();
    done(await world.app.put(`/v1/sessions/${id}`, body));
    refused(await world.app.put(`/v1/sessions/${id}`, { ...body, ownerUserId: 'bob' }), 409, 'request_rejected');
    refused(
        await world.person('bob').put(`/v1/sessions/${id}`, { ...body, ownerUserId: 'bob' }),
        404,
        'request_rejected',
    );
});

test('api 2.2: an unknown agent is 404 "Definition not found"', async () => {
    const answer = await world.app.put('/v1/sessions/x', { requestId: 'r', agentId: 'none', ownerUserId: 'ann' });
    assert.equal(refused(answer, 404, 'request_rejected').message, 'Definition not found');
});

test('api 2.2: a missing session is 404 "Session not found" on every route of it', async () => {
    for (const [method, path, body] of [
        ['GET', '', undefined],
        ['GET', '/items', undefined],
        ['GET', '/events', undefined],
        ['GET', '/manifest', undefined],
        ['POST', '/commands', message('x')],
        ['POST', '/sandbox/read', { path: 'a' }],
        ['POST', '/effects/e/settle', { requestId: 'r', idempotencyKey: 'k', outcome: { retry: true } }],
    ] as const) {
        const answer = await world.app.send(method, `/v1/sessions/none${path}`, { body });
        assert.equal(refused(answer, 404, 'request_rejected').message, 'Session not found', path);
    }
});

test('api 2.2: the body is strict, and its problems are told at once', async () => {
    const body = { requestId: '', ownerUserId: 7, info: [], vaultIds: [''], sandbox: true };
    const paths = problemPaths(await world.app.put('/v1/sessions/x', body));
    for (const path of ['requestId', 'agentId', 'ownerUserId', 'info', 'vaultIds.0'])
        assert.ok(paths.includes(path), path);
    assert.ok(
        paths.some((path) => path.startsWith('sandbox')),
        paths.join(),
    );
    refused(await world.app.put('/v1/sessions/x', { ...(await bodyOf()), title: 'x' }), 400, 'request_rejected');
});

test('api 2.2: vaults that do not exist are 404, duplicates 400; a credential outside of them is 400', async () => {
    const id = fresh('session');
    const open = async (members: object) => world.app.put(`/v1/sessions/${id}`, await bodyOf(members));
    refused(await open({ vaultIds: ['none'] }), 404, 'request_rejected');
    refused(await open({ vaultIds: ['none', 'none'] }), 400, 'request_rejected');
    const selection = { serverName: 's', credentialId: 'c' };
    refused(await open({ credentialSelections: [selection] }), 400, 'request_rejected');
    refused(await open({ credentialSelections: [selection, selection] }), 400, 'request_rejected');
});

test('api 2.2: info and the owner are any object and any text of the application', async () => {
    const info = { deep: [{ a: '\u0000\ud800' }], n: 1e300 };
    const id = await newSession(world.app, { info, ownerUserId: 'Ünï cödé / 1' });
    assert.equal(done(await world.app.get(`/v1/sessions/${id}`)).ownerUserId, 'Ünï cödé / 1');
});

test('api 2.3: the pinned manifest of a session', async () => {
    const agentId = await newAgent(world.app);
    const id = await newSession(world.app, { agentId });
    const { manifestHash } = done(await world.app.get(`/v1/sessions/${id}`));
    const { manifest, ...rest } = done(await world.app.get(`/v1/sessions/${id}/manifest`));
    assert.deepEqual(rest, { sessionId: id, agentId, manifestHash, implementationVersion: '1' });
    assert.equal(manifest.id, agentId);
    const reader = world.person('ann', 'agents:read');
    assert.deepEqual(done(await reader.get(`/v1/sessions/${id}/manifest`)).manifest, manifest);
});

test('api 2.2: statuses and the active turn follow the turn', async () => {
    const id = await newSession(world.app);
    await turn(world.app, id, 'hello');
    const view = done(await world.app.get(`/v1/sessions/${id}`));
    assert.deepEqual([view.status, view.activeTurnId], ['completed', null]);
    await turn(world.app, id, [{ fail: 'auth' }]);
    assert.equal(done(await world.app.get(`/v1/sessions/${id}`)).status, 'failed');
    const { turnId } = await command(world.app, id, message([{ delayMs: 60_000 }, { text: 'late' }]));
    const busy = done(await world.app.get(`/v1/sessions/${id}`));
    assert.ok(['runnable', 'running'].includes(busy.status), busy.status);
    assert.equal(busy.activeTurnId, turnId);
    await command(world.app, id, { type: 'cancel', requestId: 'r', idempotencyKey: 'cancel' });
    const cancelled = done(await world.app.get(`/v1/sessions/${id}`));
    assert.deepEqual([cancelled.status, cancelled.activeTurnId], ['cancelled', null]);
});
