// What model calls used: sums, lists, the export, and budgets that stop a turn (api 1.10, 2.3, 3, 3.2; engine e.5).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, problemsOf, refused } from './support/client.ts';
import { eventsUntil } from './support/sse.ts';
import {
    command,
    endsTurn,
    fresh,
    message,
    newAgent,
    newSession,
    only,
    openWorld,
    plainManifest,
    turn,
    typesOf,
} from './support/world.ts';

const world = await openWorld();
const { app, management } = world;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO_MS = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const NUMBERS = [
    'inputTokens',
    'outputTokens',
    'totalTokens',
    'cachedTokens',
    'cacheWriteTokens',
    'reasoningTokens',
    'costUsd',
];

/** A turn of so many model calls. */
function calls(count: number) {
    const step = { tools: [{ name: 'bash', input: { command: 'true' } }] };
    return [...Array(count - 1).fill(step), { text: 'done' }];
}

const agentId = await newAgent(app);
const session = await newSession(app, { agentId, sandbox: {} });
const first = (await turn(app, session, calls(3)))[0].turnId;
const second = (await turn(app, session, calls(2)))[0].turnId;

function usage(query = '', id = session) {
    return app.get(`/v1/sessions/${id}/usage${query}`);
}

function list(query = '', id = session) {
    return app.get(`/v1/sessions/${id}/calls/model${query}`);
}

async function setBudgets(budgets: object[]): Promise<any> {
    return done(await management.put('/v1/tenant/budgets', { requestId: fresh('budgets'), budgets }));
}

function sum(rows: any[], name: string): number {
    return rows.reduce((total, row) => total + (row.usage?.[name] ?? 0), 0);
}

test('api 2.3: a model call as it is listed', async () => {
    const { calls, nextCursor, asOf } = done(await list());
    assert.match(asOf, ISO_MS);
    assert.equal(nextCursor, null);
    assert.equal(calls.length, 5);
    for (const { id, at, usage, ...rest } of calls.slice(0, 3)) {
        assert.match(id, UUID);
        assert.match(at, ISO_MS);
        const who = { sessionId: session, turnId: first, agentId, provider: 'fixture', model: 'script' };
        assert.deepEqual(rest, { ...who, outcome: 'completed' });
        const quality = ['duplicate', 'tokensReported', 'costKnown'];
        assert.deepEqual(Object.keys(usage).sort(), [...NUMBERS, ...quality].sort());
        assert.deepEqual([usage.duplicate, usage.tokensReported, usage.costKnown], [false, true, true]);
        assert.ok(usage.totalTokens > 0);
    }
});

test('api 1.10: pages of a session run oldest first, each call once, for every limit and turn', async () => {
    const whole = done(await list('?limit=200')).calls;
    const times = whole.map((call: any) => call.at);
    assert.deepEqual(times, [...times].sort());
    for (const filter of ['', `&turnId=${second}`]) {
        const wanted = whole.filter((call: any) => filter === '' || call.turnId === second);
        for (const limit of [1, 2, 5]) {
            const found: any[] = [];
            let cursor = '';
            for (;;) {
                const page = done(await list(`?limit=${limit}${filter}${cursor}`));
                assert.ok(page.calls.length <= limit);
                found.push(...page.calls);
                if (page.nextCursor === null) break;
                assert.match(page.nextCursor, /^[A-Za-z0-9_-]{1,4096}$/);
                cursor = `&cursor=${page.nextCursor}`;
            }
            assert.deepEqual(found, wanted, `${limit}${filter}`);
        }
    }
});

test('api 2.3: a session sums up, and so does each of its turns', async () => {
    const { calls } = done(await list());
    for (const turnId of [null, first, second]) {
        const rows = calls.filter((call: any) => turnId === null || call.turnId === turnId);
        const { asOf, ...told } = done(await usage(turnId === null ? '' : `?turnId=${turnId}`));
        assert.match(asOf, ISO_MS);
        const sums = Object.fromEntries(NUMBERS.map((name) => [name, sum(rows, name)]));
        const counts = { duplicates: 0, unpricedCalls: 0, unreportedCalls: 0, unknownQualityCalls: 0 };
        assert.deepEqual(told, { sessionId: session, turnId, ...sums, calls: rows.length, ...counts });
    }
});

test('api 2.3: a session without calls, and a turn that it does not have, used nothing', async () => {
    const empty = await newSession(app, { agentId });
    for (const answer of [await usage('', empty), await usage(`?turnId=${first}`, empty)]) {
        const { calls, totalTokens, costUsd } = done(answer);
        assert.deepEqual([calls, totalTokens, costUsd], [0, 0, 0]);
    }
    assert.deepEqual(done(await list(`?turnId=${first}`, empty)).calls, []);
});

test('api 2.2: usage and calls are for an application key as itself, whatever the scopes', async () => {
    const person = world.person('ann', 'sessions:own agents:read agents:write sandboxes:write');
    for (const path of [`/v1/sessions/${session}/usage`, `/v1/sessions/${session}/calls/model`]) {
        assert.deepEqual(refused(await person.get(path), 403, 'scope_required').details, { scopes: [] });
        refused(await management.get(path), 403, 'key_role_mismatch');
        refused(await app.get(path.replace(session, 'nobody')), 404, 'request_rejected');
    }
});

test('api 1.10: what is wrong in a query of these lists, and cursors of other pages', async () => {
    const { nextCursor } = done(await list('?limit=1'));
    refused(await list(`?limit=1&turnId=${first}&cursor=${nextCursor}`), 400, 'cursor_mismatch');
    const other = await newSession(app, { agentId });
    refused(await list(`?cursor=${nextCursor}`, other), 400, 'cursor_mismatch');
    for (const cursor of ['x', '', 'e30']) refused(await list(`?cursor=${cursor}`), 400, 'cursor_invalid');
    const forged = JSON.parse(Buffer.from(nextCursor, 'base64url').toString());
    forged.key[1] = 'a\u0000';
    const cursor = Buffer.from(JSON.stringify(forged)).toString('base64url');
    refused(await list(`?limit=1&cursor=${cursor}`), 400, 'cursor_invalid');
    for (const query of ['?limit=0', '?limit=201', '?colour=red', '?turnId=']) {
        refused(await list(query), 400, 'query_invalid');
    }
    refused(await usage('?turn=x'), 400, 'query_invalid');
    for (const query of ['?scope=session', '?period=week', '?scope=agent', '?scope=turn', '?id=a', '?colour=red']) {
        refused(await management.get(`/v1/tenant/usage${query}`), 400, 'query_invalid');
    }
    for (const query of ['?limit=1001', '?limit=0', '?cursor=x']) {
        refused(await management.get(`/v1/tenant/calls/model${query}`), 400, 'query_invalid');
    }
    refused(await management.get('/v1/tenant/calls/model?after=x'), 400, 'cursor_invalid');
    refused(await management.get(`/v1/tenant/calls/model?after=${nextCursor}`), 400, 'cursor_mismatch');
    refused(await app.get('/v1/tenant/usage'), 403, 'key_role_mismatch');
    refused(await app.get('/v1/tenant/budgets'), 403, 'key_role_mismatch');
    refused(await app.get('/v1/tenant/calls/model'), 403, 'key_role_mismatch');
});

test('api 3: usage of the tenant, of an agent and of a turn, by period', async () => {
    const rows = done(await list()).calls;
    const tokens = (of: any[]) => sum(of, 'totalTokens');
    const tell = async (query: string) => done(await management.get(`/v1/tenant/usage${query}`));
    const total = await tell('');
    assert.deepEqual([total.scope, total.period, total.since], ['tenant', 'total', undefined]);
    assert.deepEqual(await tell(`?scope=agent&id=${agentId}`), {
        scope: 'agent',
        id: agentId,
        period: 'total',
        calls: 5,
        tokens: tokens(rows),
        costUsd: 0,
    });
    const ofTurn = await tell(`?scope=turn&id=${second}&period=total`);
    const ownTokens = tokens(rows.filter((row: any) => row.turnId === second));
    assert.deepEqual([ofTurn.id, ofTurn.calls, ofTurn.tokens], [second, 2, ownTokens]);
    for (const period of ['day', 'month']) {
        const { since, calls } = await tell(`?period=${period}`);
        const length = period === 'day' ? 10 : 7;
        assert.equal(since, `${new Date().toISOString().slice(0, length)}${'-01'.slice(length - 7)}T00:00:00.000Z`);
        assert.ok(calls >= 0 && calls <= total.calls);
    }
    assert.equal((await tell('?scope=agent&id=nobody')).calls, 0);
});

test('api 1.10: the export gives each call once, and goes on where it ended', async () => {
    const drain = async (after: string, limit: number) => {
        const found: any[] = [];
        let next = after;
        for (;;) {
            const query = next === '' ? `?limit=${limit}` : `?limit=${limit}&after=${next}`;
            const page = done(await management.get(`/v1/tenant/calls/model${query}`));
            assert.match(page.asOf, ISO_MS);
            assert.ok(page.calls.length <= limit);
            found.push(...page.calls);
            if (page.calls.length > 0) assert.notEqual(page.next, next);
            next = page.next;
            if (page.caughtUp) return { found, next };
            assert.equal(page.calls.length, limit);
        }
    };
    /** Until so many came: on PostgreSQL, transactions of others on that server hold calls back while they are open. */
    const drainUntil = async (after: string, limit: number, count: number) => {
        for (;;) {
            const drained = await drain(after, limit);
            if (drained.found.length >= count) return drained;
        }
    };
    const total = done(await management.get('/v1/tenant/usage')).calls;
    const whole = await drainUntil('', 1000, total);
    assert.equal(whole.found.length, total);
    const own = whole.found.filter((call: any) => call.sessionId === session);
    const byId = (rows: any[]) => [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
    assert.deepEqual(byId(own), byId(done(await list()).calls));
    for (const limit of [1, 2, 3]) assert.deepEqual((await drain('', limit)).found, whole.found);
    assert.deepEqual((await drain(whole.next, 7)).found, []);
    const other = await newSession(app, { agentId });
    await turn(app, other, 'hello');
    const later = await drainUntil(whole.next, 7, 1);
    assert.deepEqual(
        later.found.map((call: any) => call.sessionId),
        [other],
    );
});

test('api 2.3: a call that a cancel cut off is listed as failed, without usage', async () => {
    const id = await newSession(app, { agentId, sandbox: {} });
    await command(app, id, message([...calls(2).slice(0, 1), { delayMs: 600_000, text: 'late' }]));
    await eventsUntil(app, id, (event: any) => event.type === 'tool.completed');
    await command(app, id, { type: 'cancel', requestId: 'r', idempotencyKey: fresh('cancel') });
    const rows = done(await list('', id)).calls;
    assert.deepEqual(
        rows.map((call: any) => [call.outcome, call.usage === null]),
        [
            ['completed', false],
            ['failed', true],
        ],
    );
    const told = done(await usage('', id));
    assert.deepEqual([told.calls, told.unreportedCalls], [2, 1]);
});

test('api 3.2: budgets are replaced as a whole, and shown as they were put', async () => {
    const budgets = [
        { scope: 'tenant', period: 'month', limitUsd: 12.5, limitTokens: 1_000_000 },
        { scope: 'agent', id: 'a', period: 'day', limitUsd: 0.1 },
        { scope: 'turn', limitTokens: 5 },
    ];
    assert.deepEqual(await setBudgets(budgets), { budgets });
    assert.deepEqual(done(await management.get('/v1/tenant/budgets')), { budgets });
    assert.deepEqual(done(await management.put('/v1/tenant/budgets', { budgets: [] })), { budgets: [] });
    const many = Array.from({ length: 100 }, (_, at) => ({
        scope: 'agent',
        id: `a${String(at).padStart(3, '0')}`,
        period: 'day',
        limitTokens: 1,
    }));
    assert.deepEqual(await setBudgets(many), { budgets: many });
    const answer = await management.put('/v1/tenant/budgets', { budgets: [...many, { scope: 'turn', limitUsd: 1 }] });
    assert.deepEqual(problemPaths(answer), ['budgets']);
    assert.deepEqual(await setBudgets([]), { budgets: [] });
});

test('api 3.2: everything that is wrong in budgets is told, and nothing is changed', async () => {
    const put = (budgets: unknown) => management.put('/v1/tenant/budgets', { requestId: 'r', budgets });
    const wrong = [
        { scope: 'tenant', limitUsd: 1 },
        { scope: 'agent', period: 'day', limitUsd: 0 },
        { scope: 'turn', period: 'day', limitTokens: 1.5 },
        { scope: 'session', limitUsd: 1 },
        { scope: 'tenant', period: 'week', id: 'x', limitUsd: -1 },
    ];
    assert.deepEqual(problemPaths(await put(wrong)), [
        'budgets.0.period',
        'budgets.1.id',
        'budgets.1.limitUsd',
        'budgets.2',
        'budgets.2.limitTokens',
        'budgets.3.scope',
        'budgets.4',
        'budgets.4.limitUsd',
        'budgets.4.period',
    ]);
    const unlimited = [
        { scope: 'tenant', period: 'day' },
        { scope: 'turn', limitUsd: 1 },
        { scope: 'turn', limitTokens: 1 },
        { scope: 'agent', id: 'a', period: 'day', limitUsd: 1 },
        { scope: 'agent', id: 'a', period: 'month', limitUsd: 1 },
    ];
    assert.deepEqual(problemPaths(await put(unlimited)), ['budgets.0', 'budgets.2', 'budgets.4']);
    assert.match(problemsOf(await put(unlimited))[0]!.message, /limitUsd, limitTokens/);
    assert.deepEqual(done(await management.get('/v1/tenant/budgets')), { budgets: [] });
});

test('engine e.5: a budget that is used up ends the turn, and the refused call is none', async () => {
    const own = await newAgent(app, plainManifest(fresh('spender')));
    const id = await newSession(app, { agentId: own, sandbox: {} });
    for (const budget of [
        { scope: 'turn', limitTokens: 1 },
        { scope: 'agent', id: own, period: 'day', limitTokens: 1 },
        { scope: 'tenant', period: 'month', limitTokens: 1 },
    ]) {
        const before = done(await usage('', id)).calls;
        await setBudgets([budget]);
        const events = await turn(app, id, calls(3));
        const { code, message, retryable } = only(events, 'model.failed').payload;
        assert.deepEqual([code, retryable], ['budget_exhausted', false]);
        assert.match(message, /budget/);
        assert.equal(only(events, 'turn.failed').payload.error.code, 'model.budget_exhausted');
        const made = events.filter((event: any) => event.type === 'message.assistant').length;
        assert.equal(made, budget.scope === 'turn' ? 1 : 0, typesOf(events).join());
        assert.equal(done(await usage('', id)).calls, before + made);
        await setBudgets([]);
    }
    assert.equal((await turn(app, id, calls(3))).at(-1).type, 'turn.completed');
});

test('api 3.2: what costs nothing is never too dear, and another agent is not limited', async () => {
    const id = await newSession(app, { agentId });
    await setBudgets([
        { scope: 'tenant', period: 'day', limitUsd: 0.000000001 },
        { scope: 'agent', id: 'somebody-else', period: 'day', limitTokens: 1 },
    ]);
    assert.ok(endsTurn((await turn(app, id, 'hello')).at(-1)));
    assert.equal((await turn(app, id, 'hello')).at(-1).type, 'turn.completed');
    await setBudgets([]);
});

test('api 1.2: reads of sessions and the export of calls are advertised', async () => {
    const { features } = done(await world.nobody.get('/health')).protocol;
    assert.ok(features.includes('session-reads') && features.includes('calls-export'), features.join());
});
