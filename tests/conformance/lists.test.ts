// Lists of sessions, whole and in pages (api 2.2, 1.10).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import type { Client } from './support/client.ts';
import { newAgent, newSession, openWorld, turn } from './support/world.ts';

const world = await openWorld();
const agentId = await newAgent(world.app);
const ids: string[] = [];
for (const ownerUserId of ['ann', 'bob', 'ann', 'bob', 'ann']) {
    ids.push(await newSession(world.app, { agentId, ownerUserId }));
}
await turn(world.app, ids[0]!, 'x');

function list(query: string, client: Client = world.app) {
    return client.get(`/v1/sessions${query}`);
}

function idsOf({ sessions }: any): string[] {
    return sessions.map((session: any) => session.id);
}

/** The ids of all pages of this size. */
async function pagesOf(limit: number, filters = '', client: Client = world.app): Promise<string[]> {
    const found: string[] = [];
    let cursor = '';
    do {
        const page = done(await list(`?limit=${limit}${filters}${cursor}`, client));
        assert.ok(page.sessions.length <= limit);
        found.push(...idsOf(page));
        if (page.nextCursor === null) return found;
        assert.match(page.nextCursor, /^[A-Za-z0-9_-]{1,4096}$/);
        cursor = `&cursor=${page.nextCursor}`;
    } while (found.length < 100);
    throw new Error('the pages do not end');
}

test('api 2.2: without a limit, summaries, filtered by agent', async () => {
    await newSession(world.app);
    const { sessions } = done(await list(`?agentId=${agentId}`));
    assert.deepEqual(idsOf({ sessions }).sort(), [...ids].sort());
    const summary = { id: ids[1], agentId, ownerUserId: 'bob', status: 'idle', activeTurnId: null };
    assert.deepEqual(
        sessions.find((session: any) => session.id === ids[1]),
        summary,
    );
    assert.ok(done(await list('')).sessions.length > ids.length);
});

test('api 1.10: without a limit, other parameters of pages are ignored', async () => {
    const all = done(await list(''));
    for (const query of ['?cursor=x', '?status=failed', '?ownerUserId=bob', '?colour=red']) {
        assert.deepEqual(done(await list(query)), all, query);
    }
});

test('api 2.2: an item of a page has more members than a summary', async () => {
    const page = done(await list(`?limit=200&agentId=${agentId}`));
    const item = (id: string) => page.sessions.find((session: any) => session.id === id);
    const { createdAt, lastEventAt, lastTurnId, ...rest } = item(ids[0]!);
    const summary = { agentId, ownerUserId: 'ann', activeTurnId: null, sandboxId: null };
    assert.deepEqual(rest, { ...summary, id: ids[0], status: 'completed' });
    assert.ok(Date.parse(createdAt) <= Date.parse(lastEventAt));
    assert.equal(typeof lastTurnId, 'string');
    assert.deepEqual([item(ids[2]!).lastTurnId, item(ids[2]!).lastEventAt], [null, null]);
});

test('api 2.2: pages of every size give the newest first, each session once', async () => {
    const whole = await pagesOf(200, `&agentId=${agentId}`);
    assert.deepEqual([...whole].sort(), [...ids].sort());
    const { sessions } = done(await list(`?limit=200&agentId=${agentId}`));
    const keys = sessions.map((session: any) => `${session.createdAt} ${session.id}`);
    assert.deepEqual(keys, [...keys].sort().reverse());
    for (const limit of [1, 2, 3, 5])
        assert.deepEqual(await pagesOf(limit, `&agentId=${agentId}`), whole, `${limit}`);
});

test('api 2.2: filters of pages narrow them together', async () => {
    const only = (query: string) => pagesOf(2, `&agentId=${agentId}${query}`);
    assert.deepEqual((await only('&ownerUserId=bob')).sort(), [ids[1], ids[3]]);
    assert.deepEqual(await only('&status=completed'), [ids[0]]);
    assert.deepEqual(await only('&status=completed&ownerUserId=bob'), []);
    assert.deepEqual(await only('&sandboxId=none'), []);
    assert.deepEqual(await only('&uncertain=true'), []);
});

test('api 2.2: a person sees own sessions in pages too, and may not filter by owner', async () => {
    const bob = world.person('bob');
    assert.deepEqual((await pagesOf(1, '', bob)).sort(), [ids[1], ids[3]]);
    const { code, status } = (await list('?limit=5&ownerUserId=bob', bob)).body;
    assert.deepEqual([status, code], ['rejected', 'request_rejected']);
    assert.equal((await list('?limit=5&ownerUserId=bob', bob)).status, 403);
});

test('api 1.10: a cursor that cannot be read is cursor_invalid, one of other filters cursor_mismatch', async () => {
    const { nextCursor } = done(await list('?limit=1'));
    done(await list(`?limit=7&cursor=${nextCursor}`));
    refused(await list(`?limit=1&agentId=${agentId}&cursor=${nextCursor}`), 400, 'cursor_mismatch');
    for (const cursor of ['x', '', 'e30', `${nextCursor}x.`, 'a'.repeat(4_097)]) {
        refused(await list(`?limit=1&cursor=${cursor}`), 400, 'cursor_invalid');
    }
});

test('api 1.10: a page with a parameter that the list does not have, or a wrong limit, is query_invalid', async () => {
    refused(await list('?limit=5&colour=red'), 400, 'query_invalid');
    refused(await list('?limit=5&limit=6'), 400, 'query_invalid');
    for (const limit of ['0', '201', '-1', 'x', '']) refused(await list(`?limit=${limit}`), 400, 'query_invalid');
    refused(await list('?limit=5&status=asleep'), 400, 'query_invalid');
});
