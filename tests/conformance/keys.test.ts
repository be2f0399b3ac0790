// Application keys (api 3, Key errors).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { newSession, openWorld } from './support/world.ts';

const world = await openWorld('none');
const ISO_MS = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

function put(id: string) {
    return world.management.put(`/v1/tenant/keys/${encodeURIComponent(id)}`);
}

function remove(id: string) {
    return world.management.delete(`/v1/tenant/keys/${encodeURIComponent(id)}`);
}

async function keyIds(): Promise<string[]> {
    return done(await world.management.get('/v1/tenant/keys')).keys.map((key: any) => key.id);
}

test('api 3: a new key is shown once, and works', async () => {
    const { key, createdAt, ...rest } = done(await put('web'));
    assert.deepEqual(rest, { id: 'web', role: 'application', rotated: false });
    assert.match(key, /^[0-9a-f]{64}$/);
    assert.match(createdAt, ISO_MS);
    assert.equal(done(await world.clientWith(key).get('/v1/me')).via, 'application:web');
    const { keys } = done(await world.management.get('/v1/tenant/keys'));
    const listed = keys.find((one: any) => one.id === 'web');
    assert.deepEqual(listed, { id: 'web', role: 'application', createdAt });
});

test('api 3: a rotated key is another, and the old one is refused from the next request on', async () => {
    const old = done(await put('rotating')).key;
    const { key, rotated } = done(await put('rotating'));
    assert.equal(rotated, true);
    assert.notEqual(key, old);
    refused(await world.clientWith(old).get('/v1/me'), 401, 'credential_invalid');
    done(await world.clientWith(key).get('/v1/me'));
});

test('api 3: a stream that was opened with a key ends when the key is rotated', async () => {
    const client = world.clientWith(done(await put('following')).key);
    const session = await newSession(client);
    const response = await client.open('GET', `/v1/sessions/${session}/events`);
    done(await put('following'));
    // It ends: an open stream would keep this waiting until the file's deadline.
    await response.text();
});

test('api 3: keys are listed by id', async () => {
    for (const id of ['zeta', 'alpha', 'a-1']) done(await put(id));
    const ids = await keyIds();
    assert.deepEqual(ids, [...ids].sort());
    assert.ok(ids.includes('local') && ids.includes('local-management'), ids.join());
});

test('api 3: a deleted key is gone, and a second deletion is 404 "No key <id>"', async () => {
    const { key } = done(await put('gone'));
    assert.deepEqual(done(await remove('gone')), { id: 'gone', deleted: true });
    refused(await world.clientWith(key).get('/v1/me'), 401, 'credential_invalid');
    assert.equal(refused(await remove('gone'), 404, 'request_rejected').message, 'No key gone');
    assert.ok(!(await keyIds()).includes('gone'));
});

test('api 1.12: the grammar of key ids', async () => {
    for (const id of ['a', 'a1-', 'x'.repeat(32)]) done(await put(id));
    for (const id of ['A', '1a', '-a', 'a_b', 'a.b', 'a b', 'a/b', 'é', 'x'.repeat(33)]) {
        refused(await put(id), 400, 'invalid_request');
        refused(await remove(id), 400, 'invalid_request');
    }
});

test("api 3: studio, bootstrap and a management key's name are reserved", async () => {
    for (const id of ['studio', 'bootstrap', 'local-management']) refused(await put(id), 400, 'request_rejected');
    refused(await remove('local-management'), 400, 'request_rejected');
    done(await world.management.get('/v1/tenant'));
});

test('api 3: deleting the reserved name studio is 400', async () => {
    refused(await remove('studio'), 400, 'request_rejected');
});

test('api 3: only a management key makes keys', async () => {
    refused(await world.app.put('/v1/tenant/keys/mine'), 403, 'key_role_mismatch');
});
