// POST /v1/tenant/reset (api 3, 4.3; environments 5).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import type { Answer } from './support/client.ts';
import { follow } from './support/sse.ts';
import { command, headOf, message, newAgent, newSession, openWorld, turn } from './support/world.ts';

const world = await openWorld();

function reset(members: object): Promise<Answer> {
    const body = { requestId: 'r', scope: 'all', activeWork: 'drain', ...members };
    return world.management.post('/v1/tenant/reset', body);
}

async function sessionIds(): Promise<string[]> {
    return done(await world.app.get('/v1/sessions')).sessions.map((session: any) => session.id);
}

async function bash(session: string, text: string): Promise<string> {
    const answer = await world.app.post(`/v1/sessions/${session}/sandbox/bash`, { command: text });
    return done(answer).output.stdout;
}

test('api 3: the body names scope and activeWork', async () => {
    assert.deepEqual(problemPaths(await world.management.post('/v1/tenant/reset', {})), [
        'activeWork',
        'requestId',
        'scope',
    ]);
    assert.deepEqual(problemPaths(await reset({ scope: 'agents', activeWork: 'wait' })), ['activeWork', 'scope']);
    refused(await world.app.post('/v1/tenant/reset', {}), 403, 'key_role_mismatch');
});

test('api 3, 4.3: a reset of sessions removes them; the same id begins again at 0; the rest stays', async () => {
    const agentId = await newAgent(world.app);
    const session = await newSession(world.app, { agentId, sandbox: {} });
    await turn(world.app, session, 'before');
    await bash(session, 'echo mine > file');
    const cursor = await headOf(world.app, session);
    assert.deepEqual(done(await reset({ scope: 'sessions' })), { ok: true });

    assert.deepEqual(await sessionIds(), []);
    refused(await world.app.get(`/v1/sessions/${session}`), 404, 'request_rejected');
    refused(await world.app.get(`/v1/sessions/${session}/items`), 404, 'request_rejected');
    const tenant = done(await world.management.get('/v1/tenant'));
    assert.deepEqual(
        tenant.agents.map((agent: any) => agent.agentId),
        [agentId],
    );
    assert.deepEqual([tenant.counts.sessions, tenant.model.configured, tenant.sandbox.retained], [0, true, 0]);

    const body = { requestId: 'r', agentId, ownerUserId: 'bob', sandbox: {} };
    done(await world.app.put(`/v1/sessions/${session}`, body));
    assert.equal(await bash(session, 'ls'), '');
    // The ledger keeps what was spent, and says nothing of it to the new session.
    const { calls } = done(await world.app.get(`/v1/sessions/${session}/usage`));
    assert.equal(calls, 0);
    assert.equal(done(await world.management.get('/v1/tenant/usage')).calls, 1);
    // The session that was came further than the one that is.
    const beyond = await world.app.get(`/v1/sessions/${session}/items?cursor=${cursor}`);
    assert.equal(refused(beyond, 400, 'request_rejected').message, 'Invalid cursor');
    await turn(world.app, session, 'after');
    const { items } = done(await world.app.get(`/v1/sessions/${session}/items`));
    assert.equal(items[0].seq, 0);
    assert.ok(!JSON.stringify(items).includes('before'));
});

test('api 1.11: streams of sessions that were reset end', async () => {
    const session = await newSession(world.app);
    await turn(world.app, session, 'x');
    const types: (string | undefined)[] = [];
    const frames = follow(world.app, session);
    for (let at = 0; at < 3; at++) types.push((await frames.next()).value?.event);
    const ending = (async () => {
        for await (const frame of frames) if (frame.event !== undefined) types.push(frame.event);
    })();
    done(await reset({ scope: 'sessions' }));
    await ending;
    assert.deepEqual(types, ['command.message', 'message.assistant', 'turn.completed']);
});

test('api 3: activeWork cancel ends a turn that runs, and its stream says so', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const following = (async () => {
        const types: string[] = [];
        for await (const frame of follow(world.app, session)) if (frame.event !== undefined) types.push(frame.event);
        return types;
    })();
    const script = [{ tools: [{ name: 'bash', input: { command: 'sleep 50' } }] }, { text: 'never' }];
    await command(world.app, session, message(script));
    done(await reset({ scope: 'all', activeWork: 'cancel' }));
    // What the workspace said last may follow.
    assert.ok((await following).includes('turn.cancelled'));
    assert.deepEqual(await sessionIds(), []);
});

test('api 3: a reset of sandboxes removes files and keeps sessions', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    await turn(world.app, session, 'x');
    await bash(session, 'echo mine > file');
    done(await reset({ scope: 'sandboxes' }));
    assert.deepEqual(await sessionIds(), [session]);
    assert.equal(await bash(session, 'ls'), '');
    const { items } = done(await world.app.get(`/v1/sessions/${session}/items`));
    assert.equal(items[0].seq, 0);
});

test('api 3: draining waits for turns that run; meanwhile work is 503, and a second reset 409', async () => {
    const session = await newSession(world.app);
    const other = await newSession(world.app);
    await command(world.app, session, message([{ delayMs: 700 }, { text: 'done' }]));
    const draining = reset({ scope: 'sandboxes' });
    const send = () => world.app.post(`/v1/sessions/${other}/commands`, message('x', { whenBusy: 'queue' }));
    let busy = await send();
    while (busy.status === 200) busy = await send();
    refused(busy, 503, 'request_rejected');
    assert.equal(busy.headers.get('retry-after'), '1');
    refused(await reset({ scope: 'sandboxes' }), 409, 'request_rejected');
    const cancel = { type: 'cancel', requestId: 'r', idempotencyKey: 'cancel' };
    done(await world.app.post(`/v1/sessions/${other}/commands`, cancel));
    done(await draining);
    const view = done(await world.app.get(`/v1/sessions/${session}`));
    assert.equal(view.status, 'completed');
    await turn(world.app, other, 'and work goes on');
});
