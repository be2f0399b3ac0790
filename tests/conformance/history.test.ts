// The history of a session as a list, whole and in pages (api 2.3, 1.10).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { follow } from './support/sse.ts';
import { newSession, openWorld, turn, typesOf } from './support/world.ts';

const world = await openWorld();
const session = await newSession(world.app);
for (const text of ['one', 'two', 'three']) await turn(world.app, session, text);
const whole = done(await items(''));

function items(query: string, headers: Record<string, string> = {}) {
    return world.app.get(`/v1/sessions/${session}/items${query}`, { headers });
}

function cursorOf(id: string, seq: number): string {
    return Buffer.from(`${id}:${seq}`).toString('base64url');
}

/** All pages of a limit: their items, and how each ended. */
async function pages(limit: number): Promise<{ items: any[]; tails: boolean[] }> {
    const found: any[] = [];
    const tails: boolean[] = [];
    for (let cursor = ''; !tails.at(-1);) {
        const page = done(await items(`?limit=${limit}${cursor}`));
        found.push(...page.items);
        tails.push(page.tail);
        assert.ok(page.items.length <= limit);
        assert.match(page.cursor, /^h1\./);
        cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
    }
    return { items: found, tails };
}

test('api 2.3: without a limit all public events come, with the cursor of the last record', () => {
    const turnTypes = ['command.message', 'message.assistant', 'turn.completed'];
    assert.deepEqual(typesOf(whole.items), [...turnTypes, ...turnTypes, ...turnTypes]);
    assert.deepEqual(Object.keys(whole).sort(), ['cursor', 'items']);
    const seq = Number(Buffer.from(whole.cursor, 'base64url').toString().split(':').at(-1));
    assert.ok(seq >= whole.items.at(-1).seq);
});

test('api 2.3: a session of which nothing happened has no items and a null cursor', async () => {
    const empty = await newSession(world.app);
    assert.deepEqual(done(await world.app.get(`/v1/sessions/${empty}/items`)), { items: [], cursor: null });
    const page = done(await world.app.get(`/v1/sessions/${empty}/items?limit=5`));
    assert.deepEqual([page.items, page.tail], [[], true]);
});

test('api 2.3: a cursor, as a parameter or as Last-Event-ID, begins after its event; the parameter wins', async () => {
    const [first, second] = whole.items;
    const rest = { ...whole, items: whole.items.slice(1) };
    assert.deepEqual(done(await items(`?cursor=${first.cursor}`)), rest);
    assert.deepEqual(done(await items('', { 'last-event-id': first.cursor })), rest);
    assert.deepEqual(done(await items(`?cursor=${first.cursor}`, { 'last-event-id': second.cursor })), rest);
    assert.deepEqual(done(await items(`?cursor=${whole.cursor}`)), { items: [], cursor: whole.cursor });
});

test('api 2.3: pages of every size give the same events, and only the last is the tail', async () => {
    for (const limit of [1, 2, 5, 9, 200]) {
        const all = await pages(limit);
        assert.deepEqual(all.items, whole.items, String(limit));
        assert.ok(all.tails.slice(0, -1).every((tail) => !tail));
    }
});

test('api 2.3: internal records count, so a page may be empty before the tail', async () => {
    const { tails } = await pages(1);
    const last = Number(Buffer.from(whole.cursor, 'base64url').toString().split(':').at(-1));
    assert.ok(tails.length >= last + 1, `${tails.length} pages of one for ${last + 1} records`);
});

test("api 2.3: a page's cursor goes on in the stream and in the unlimited list", async () => {
    const { cursor } = done(await items('?limit=1'));
    assert.deepEqual(done(await items('?limit=200')).items, whole.items);
    for await (const frame of follow(world.app, session, { query: `cursor=${encodeURIComponent(cursor)}` })) {
        assert.equal(frame.id, whole.items[1].cursor);
        break;
    }
});

test('api 2.3: a limited page takes only cursors of pages', async () => {
    for (const cursor of [whole.items[0].cursor, 'x', 'h1.', 'h1.%2f', `h1.${whole.items[0].cursor}`]) {
        refused(await items(`?limit=5&cursor=${cursor}`), 400, 'cursor_invalid');
    }
});

test("api 2.3: a page's cursor is bound to the session and the agent filter", async () => {
    const { cursor } = done(await items('?limit=1'));
    const at = `limit=1&cursor=${encodeURIComponent(cursor)}`;
    refused(await items(`?${at}&agent=child`), 400, 'cursor_mismatch');
    const other = await newSession(world.app);
    refused(await world.app.get(`/v1/sessions/${other}/items?${at}`), 400, 'cursor_mismatch');
});

test('api 1.10: a limit is a number from 1 to 200', async () => {
    for (const limit of ['0', '201', '-1', '1.5', 'x', '', '1e1', '+5']) {
        refused(await items(`?limit=${encodeURIComponent(limit)}`), 400, 'query_invalid');
    }
});

test('decisions, Text and JSON: a foreign, malformed or future cursor is 400 "Invalid cursor"', async () => {
    const other = await newSession(world.app);
    const head = cursorOf(session, 10_000);
    for (const cursor of [cursorOf(other, 0), head, cursorOf(session, -1), 'x', '%00', cursorOf(session, 0.5)]) {
        const told = [refused(await items(`?cursor=${cursor}`), 400, 'request_rejected').message];
        const events = `/v1/sessions/${session}/events`;
        told.push(refused(await world.app.get(`${events}?cursor=${cursor}`), 400, 'request_rejected').message);
        assert.deepEqual(told, ['Invalid cursor', 'Invalid cursor'], cursor);
    }
    const bad = { headers: { 'last-event-id': 'x' } };
    refused(await world.app.get(`/v1/sessions/${session}/events`, bad), 400, 'request_rejected');
});

test('decisions, Text and JSON: a cursor is split at its last colon', async () => {
    const id = 'a:1:b';
    const agentId = whole.items[0].agentId ?? (await world.app.get(`/v1/sessions/${session}`)).body.agentId;
    done(
        await world.app.put(`/v1/sessions/${encodeURIComponent(id)}`, {
            requestId: 'r',
            agentId,
            ownerUserId: 'ann',
        }),
    );
    const [first, second] = await turn(world.app, id, 'x');
    assert.equal(first.cursor, cursorOf(id, 0));
    const rest = done(await world.app.get(`/v1/sessions/${encodeURIComponent(id)}/items?cursor=${first.cursor}`));
    assert.deepEqual(rest.items[0], second);
});

test('api 2.3: the filter of an agent that did nothing gives nothing', async () => {
    const filtered = done(await items('?agent=child'));
    assert.deepEqual(filtered, { items: [], cursor: whole.cursor });
});

test('api 4.1: the list and the stream give the same events', async () => {
    const streamed = [];
    for await (const frame of follow(world.app, session)) {
        streamed.push(JSON.parse(frame.data!));
        if (streamed.length === whole.items.length) break;
    }
    assert.deepEqual(streamed, whole.items);
});
