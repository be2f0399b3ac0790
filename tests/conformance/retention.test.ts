// GET and PUT /v1/tenant/retention: how long idle sessions and old events are kept.

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import { newSession, openWorld, turn } from './support/world.ts';

const world = await openWorld();

const PATH = '/v1/tenant/retention';

test('everything is kept unless the operator says otherwise', async () => {
    assert.deepEqual(done(await world.management.get(PATH)), { sessions: null, events: null });
    refused(await world.app.get(PATH), 403, 'key_role_mismatch');
    refused(await world.app.put(PATH, {}), 403, 'key_role_mismatch');
});

test('a PUT replaces both times, and names what is no duration', async () => {
    const body = { requestId: 'r', sessions: '48h', events: '90m' };
    assert.deepEqual(done(await world.management.put(PATH, body)), { sessions: '2d', events: '90m' });
    const wrong = { sessions: '0d', events: 7, days: 1 };
    assert.deepEqual(problemPaths(await world.management.put(PATH, wrong)).sort(), ['', 'events', 'sessions']);
    assert.deepEqual(done(await world.management.get(PATH)), { sessions: '2d', events: '90m' });
    assert.deepEqual(done(await world.management.put(PATH, { sessions: null })), { sessions: null, events: null });
});

test('old events go, and the session stays', async () => {
    const session = await newSession(world.app);
    await turn(world.app, session, 'hello');
    const items = async () => done(await world.app.get(`/v1/sessions/${session}/items`)).items;
    assert.notEqual((await items()).length, 0);
    done(await world.management.put(PATH, { events: '1ms' }));
    while ((await items()).length > 0);
    const { status } = done(await world.app.get(`/v1/sessions/${session}`));
    assert.equal(status, 'completed');
    done(await world.management.put(PATH, {}));
    assert.equal((await turn(world.app, session, 'again')).at(-1).type, 'turn.completed');
});
