// Faults of the server and its database (api 1.8). From outside they can be made where the database is a server.

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { DATABASE } from './support/database.ts';
import { newAgent, newSession, openWorld, turn } from './support/world.ts';

if (DATABASE === 'postgres') {
    const world = await openWorld('none');
    const sql = world.server.database.sql!;

    test('api 1.8: a fault is 500 internal_error with a fixed message, and passes with its cause', async () => {
        const agentId = await newAgent(world.app);
        const open = () => world.app.put('/v1/sessions/s', { requestId: 'r', agentId, ownerUserId: 'ann' });
        sql("ALTER TABLE manifests ADD COLUMN kept TEXT; UPDATE manifests SET kept = body, body = '{}'");
        const { message, requestId } = refused(await open(), 500, 'internal_error');
        assert.ok(['Runtime request failed', 'Internal error'].includes(message), message);
        assert.equal(requestId, 'r');
        sql('UPDATE manifests SET body = kept; ALTER TABLE manifests DROP COLUMN kept');
        done(await open());
    });

    test('api 1.8: a database that does not answer is 503, and the server goes on with it', async () => {
        sql('ALTER TABLE agents RENAME TO elsewhere');
        refused(await world.app.get('/v1/agents'), 503, 'request_rejected');
        sql('ALTER TABLE elsewhere RENAME TO agents');
        done(await world.app.get('/v1/agents'));
    });

    test('api 1.8: a page of a list that cannot be read is 503 reads_unavailable, and no other route', async () => {
        const session = await newSession(world.app);
        const usage = `/v1/sessions/${session}/usage`;
        const pages = () => [
            world.app.get('/v1/sessions?limit=5'),
            world.app.get(`/v1/sessions/${session}/calls/model`),
            world.management.get('/v1/tenant/calls/model'),
        ];
        const others = () => [
            world.app.get('/v1/sessions'),
            world.app.get(`/v1/sessions/${session}/items?limit=5`),
            world.app.get(usage),
            world.management.get('/v1/tenant/usage'),
        ];
        // Without its keys the server cannot even tell who asks.
        for (const tables of [['sessions', 'model_usage'], ['principals']]) {
            for (const table of tables) sql(`ALTER TABLE ${table} RENAME TO ${table}_elsewhere`);
            for (const page of pages()) {
                const answer = await page;
                refused(answer, 503, 'reads_unavailable');
                assert.equal(answer.headers.get('retry-after'), '1');
            }
            for (const other of others()) refused(await other, 503, 'request_rejected');
            for (const table of tables) sql(`ALTER TABLE ${table}_elsewhere RENAME TO ${table}`);
            for (const read of [...pages(), ...others()]) done(await read);
        }
    });

    test('engine e.5: budgets that cannot be read let calls go on, with a warning, and hold again later', async () => {
        done(await world.management.put('/v1/tenant/config/seed', { requestId: 'r', fixtureModel: true }));
        const session = await newSession(world.app);
        const end = async () => (await turn(world.app, session, 'hello')).at(-1).type;
        assert.equal(await end(), 'turn.completed');
        const budgets = [{ scope: 'tenant', period: 'month', limitTokens: 1 }];
        done(await world.management.put('/v1/tenant/budgets', { budgets }));
        sql('ALTER TABLE model_budgets RENAME TO elsewhere');
        assert.equal(await end(), 'turn.completed');
        assert.match(world.server.log(), /budgets could not be read: a model call goes on without them/);
        sql('ALTER TABLE elsewhere RENAME TO model_budgets');
        assert.equal(await end(), 'turn.failed');
    });
}
