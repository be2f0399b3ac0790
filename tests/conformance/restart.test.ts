// A server that is killed and started again: nothing acknowledged is lost, followers resume, unknown effects are
// settled (overview, Two profiles; decisions, Sessions, turns, commands).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import { eventsUntil, follow } from './support/sse.ts';
import { command, endsTurn, fresh, message, newSession, only, openWorld, turn, typesOf } from './support/world.ts';

const world = await openWorld();

async function killAndStart(): Promise<void> {
    await world.server.kill();
    await world.server.start();
}

/** A session whose turn hangs in a shell command when the server dies; answers it after the restart. */
async function uncertainSession(
    script: unknown[] = [{ text: 'end' }],
): Promise<{ session: string; effectId: string }> {
    const session = await newSession(world.app, { sandbox: {} });
    const hang = { name: 'bash', input: { command: 'sleep 600' } };
    await command(world.app, session, message([{ tools: [hang] }, ...script]));
    await eventsUntil(world.app, session, isCreating);
    await killAndStart();
    const events = await eventsUntil(world.app, session, (event) => event.type === 'effect.uncertain');
    return { session, effectId: events.at(-1).payload.effectId };
}

/** The workspace is being made for a call whose intent is on disk. */
function isCreating(event: any): boolean {
    return event.type === 'sandbox.state' && event.payload.state === 'creating';
}

async function settle(session: string, effectId: string, outcome: object, members: object = {}) {
    const body = { requestId: 'r', idempotencyKey: fresh('settle'), outcome, ...members };
    return world.app.post(`/v1/sessions/${session}/effects/${encodeURIComponent(effectId)}/settle`, body);
}

test('overview, Two profiles: a kill -9 loses nothing that was acknowledged, answers stay the same', async () => {
    const session = await newSession(world.app);
    const body = message('kept');
    const accepted = await command(world.app, session, body);
    await eventsUntil(world.app, session, endsTurn);
    const paths = ['/v1/agents', '/v1/sessions', `/v1/sessions/${session}`, `/v1/sessions/${session}/items`];
    const read = () => Promise.all(paths.map(async (path) => done(await world.app.get(path))));
    const before = await read();
    await killAndStart();
    assert.deepEqual(await read(), before);
    assert.deepEqual(await command(world.app, session, body), accepted);
});

test('overview, Two profiles: keys, tenant and model survive a restart', async () => {
    const { tenant, model } = done(await world.management.get('/v1/tenant'));
    const keys = [world.server.applicationKey, world.server.managementKey];
    await killAndStart();
    assert.deepEqual([world.server.applicationKey, world.server.managementKey], keys);
    const again = done(await world.management.get('/v1/tenant'));
    assert.deepEqual([again.tenant.id, again.model], [tenant.id, model]);
});

test('decisions, What may run again: a turn that dies in a model call goes on after the restart', async () => {
    const session = await newSession(world.app);
    const { turnId } = await command(
        world.app,
        session,
        message([{ text: 'a', tools: [] }, { delayMs: 200 }, { text: 'end' }]),
    );
    await killAndStart();
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.deepEqual([events.at(-1).type, events.at(-1).turnId], ['turn.completed', turnId]);
    assert.equal(events.filter((event) => event.type === 'command.message').length, 1);
});

test('api 1.11: a follower that resumes across kill -9 and restart gets each event once and in order', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const write = (path: string) => ({ tools: [{ name: 'read', input: { path } }] });
    const script = [write('a'), { delayMs: 400 }, write('b'), write('c'), { text: 'end' }];
    await command(world.app, session, message(script));
    const found: any[] = [];
    const take = async (until: (event: any) => boolean) => {
        const lastEventId = found.at(-1)?.cursor;
        for await (const frame of follow(world.app, session, { lastEventId })) {
            if (frame.id !== undefined) found.push(JSON.parse(frame.data!));
            if (found.length > 0 && until(found.at(-1))) return;
        }
    };
    await take((event) => event.type === 'tool.completed');
    await killAndStart();
    await take(endsTurn);
    const whole = await eventsUntil(world.app, session, endsTurn);
    assert.deepEqual(found, whole);
    assert.equal(whole.at(-1).type, 'turn.completed');
});

test('api 1.11: a stream that is open when the server dies breaks, and does not end as if all were told', async () => {
    const session = await newSession(world.app);
    await command(world.app, session, message([{ delayMs: 60_000 }, { text: 'late' }]));
    const reading = (async () => {
        for await (const frame of follow(world.app, session)) if (frame.id === undefined) return 'a frame of the end';
        return 'ended';
    })().catch(() => 'broken');
    await world.server.kill();
    assert.equal(await reading, 'broken');
    await world.server.start();
    const cancel = { type: 'cancel', requestId: 'r', idempotencyKey: 'c' };
    await command(world.app, session, cancel);
});

test('decisions, What may run again: a running command becomes uncertain, and runs no second time', async () => {
    const count = async () => done(await world.management.get('/v1/tenant')).counts.uncertainEffects;
    const before = await count();
    const { session, effectId } = await uncertainSession();
    const view = done(await world.app.get(`/v1/sessions/${session}`));
    assert.equal(view.status, 'uncertain');
    const [{ error, ...effect }, ...others] = view.uncertainEffects;
    assert.deepEqual([effect, others], [{ effectId, turnId: view.activeTurnId, kind: 'tool' }, []]);
    assert.equal(await count(), before + 1);
    refused(await world.app.post(`/v1/sessions/${session}/commands`, message('x')), 409, 'request_rejected');
    done(await settle(session, effectId, { value: null }));
    await eventsUntil(world.app, session, endsTurn);
    assert.equal(await count(), before);
});

test('decisions, Settling: with a value the turn goes on as if the tool had given it', async () => {
    const { session, effectId } = await uncertainSession();
    const value = { exitCode: 0, stdout: 'settled', stderr: '' };
    const accepted = done(await settle(session, effectId, { value }, { requestId: 'mine', idempotencyKey: 'k' }));
    const events = await eventsUntil(world.app, session, endsTurn);
    const settled = only(events, 'effect.settled');
    assert.deepEqual(settled.payload, { requestId: 'mine', idempotencyKey: 'k', effectId, outcome: { value } });
    assert.deepEqual(accepted, {
        status: 'accepted',
        turnId: settled.turnId,
        cursor: settled.cursor,
        requestId: 'mine',
    });
    assert.deepEqual(only(events, 'tool.completed').payload.output, value);
    assert.equal(events.at(-1).type, 'turn.completed');
});

test('decisions, Settling: with an error the model sees a failed call', async () => {
    const { session, effectId } = await uncertainSession();
    done(await settle(session, effectId, { error: 'lost' }));
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.equal(only(events, 'tool.completed').payload.error.message, 'lost');
    assert.equal(events.at(-1).type, 'turn.completed');
});

test('decisions, Settling: with retry the command runs again', async () => {
    const { session, effectId } = await uncertainSession();
    done(await settle(session, effectId, { retry: true }));
    let workspaces = 0;
    await eventsUntil(world.app, session, (event) => isCreating(event) && ++workspaces === 2);
    const cancel = { type: 'cancel', requestId: 'r', idempotencyKey: 'c' };
    await command(world.app, session, cancel);
});

test('api 1.9: settling is idempotent by key; another outcome, or a settled effect, is 409', async () => {
    const { session, effectId } = await uncertainSession();
    const key = { idempotencyKey: 'k' };
    const first = done(await settle(session, effectId, { value: 1 }, key));
    assert.deepEqual(done(await settle(session, effectId, { value: 1.0 }, key)), first);
    assert.match(
        refused(await settle(session, effectId, { value: 2 }, key), 409, 'request_rejected').message,
        /^Idempotency key/,
    );
    refused(await settle(session, effectId, { value: 1 }), 409, 'request_rejected');
    await eventsUntil(world.app, session, endsTurn);
});

test('decisions, Settling: an unknown effect is 404, and a wrong body 400', async () => {
    const session = await newSession(world.app);
    refused(await settle(session, 'none', { value: 1 }), 404, 'request_rejected');
    for (const outcome of [{}, { value: 1, error: 'x' }, { retry: false }, { error: '' }, { other: 1 }]) {
        refused(await settle(session, 'none', outcome), 400, 'request_rejected');
    }
    const empty = { idempotencyKey: '', requestId: '' };
    assert.deepEqual(problemPaths(await settle(session, 'none', { value: 1 }, empty)), [
        'idempotencyKey',
        'requestId',
    ]);
});

test('decisions, Cancel: an uncertain turn can be cancelled, and the session takes messages again', async () => {
    const { session, effectId } = await uncertainSession();
    await command(world.app, session, { type: 'cancel', requestId: 'r', idempotencyKey: 'c' });
    const view = done(await world.app.get(`/v1/sessions/${session}`));
    assert.deepEqual([view.status, view.activeTurnId], ['cancelled', null]);
    assert.deepEqual(
        view.uncertainEffects.map((effect: any) => effect.effectId),
        [effectId],
    );
    assert.equal((await turn(world.app, session, 'again')).at(-1).type, 'turn.completed');
    // What nobody knows of the ended turn is still found, and can be settled, but not run again.
    for (const query of ['?uncertain=true', '?uncertain=true&limit=200']) {
        const { sessions } = done(await world.app.get(`/v1/sessions${query}`));
        assert.ok(sessions.some((found: any) => found.id === session && found.status === 'completed'), query);
    }
    refused(await settle(session, effectId, { retry: true }), 409, 'request_rejected');
    done(await settle(session, effectId, { error: 'lost' }));
    assert.deepEqual(done(await world.app.get(`/v1/sessions/${session}`)).uncertainEffects, []);
    const { sessions } = done(await world.app.get('/v1/sessions?uncertain=true'));
    assert.ok(!sessions.some((found: any) => found.id === session));
});

test('decisions, Workspaces: files of a session survive a restart, and the record says reattach', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const write = { name: 'write', input: { path: 'kept', content: 'yes' } };
    await turn(world.app, session, [{ tools: [write] }, { text: 'x' }]);
    await killAndStart();
    const events = await turn(world.app, session, [
        { tools: [{ name: 'read', input: { path: 'kept' } }] },
        { text: 'x' },
    ]);
    assert.equal(only(events, 'tool.completed').payload.output, '1\tyes');
    assert.equal(events.find(isCreating).payload.reattach, true);
});

test('decisions, Small print: a draining server refuses commands with 503, reads and running tools go on', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const other = await newSession(world.app);
    const hold = { name: 'bash', input: { command: 'sleep 1; echo x >> ran; cat ran' } };
    await command(world.app, session, message([{ tools: [hold] }, { text: 'end' }]));
    await eventsUntil(world.app, session, isCreating);
    const stopped = world.server.stop();
    const approve = { type: 'approve', requestId: 'r', idempotencyKey: 'k', interactionId: 'i', approved: true };
    const send = () => world.app.post(`/v1/sessions/${other}/commands`, approve);
    let answer = await send();
    // The signal takes a moment; until then nothing is awaited in that session.
    while (answer.status === 409) answer = await send();
    refused(answer, 503, 'request_rejected');
    assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
    done(await world.app.get(`/v1/sessions/${session}`));
    const ready = await world.nobody.get('/ready');
    assert.deepEqual([ready.status, ready.body.checks.listener], [503, false]);
    assert.equal(await stopped, 0);
    await world.server.start();
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.equal(events.at(-1).type, 'turn.completed');
    // The tool ended before the server did, and did not run again.
    assert.equal(only(events, 'tool.completed').payload.output.stdout, 'x\n');
});

test('overview, Commands and files: SIGTERM ends streams and exits 0', async () => {
    const session = await newSession(world.app);
    await turn(world.app, session, 'x');
    const types: string[] = [];
    let stopped: Promise<number | null> | undefined;
    for await (const frame of follow(world.app, session)) {
        types.push(frame.event!);
        if (types.length === 3) stopped = world.server.stop();
    }
    assert.equal(await stopped, 0);
    assert.deepEqual(types, ['command.message', 'message.assistant', 'turn.completed']);
    await world.server.start();
    assert.deepEqual(typesOf(await turn(world.app, session, 'y')).at(-1), 'turn.completed');
});
