// Commands to a session: what is accepted when, and idempotency (api 1.9, 2.4).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import { eventsUntil } from './support/sse.ts';
import {
    cancel,
    command,
    endsTurn,
    fresh,
    headOf,
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

/** A script that holds a turn until it is cancelled. */
const HOLD = [{ delayMs: 120_000 }, { text: 'late' }];
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function send(session: string, body: unknown) {
    return world.app.post(`/v1/sessions/${session}/commands`, body);
}

test('api 2.4: an accepted message is answered with its turn, the cursor of its event and the requestId', async () => {
    const session = await newSession(world.app);
    const accepted = await command(world.app, session, message('x', { requestId: 'mine' }));
    assert.match(accepted.turnId, UUID);
    const [first] = await eventsUntil(world.app, session, endsTurn);
    const { cursor, turnId } = first;
    assert.deepEqual(accepted, { status: 'accepted', turnId, cursor, requestId: 'mine' });
});

test('api 4.3: following from the answered cursor misses nothing after it', async () => {
    const session = await newSession(world.app);
    const { cursor } = await command(world.app, session, message('x'));
    const events = await eventsUntil(world.app, session, endsTurn, cursor);
    assert.deepEqual(typesOf(events), ['message.assistant', 'turn.completed']);
});

test('api 2.4: exactly one of content, data and parts', async () => {
    const session = await newSession(world.app);
    const { content, ...rest } = message('x');
    const part = { type: 'text', text: 'a' };
    for (const members of [
        {},
        { content: '' },
        { content, data: 1 },
        { data: 1, parts: [part] },
        { parts: [] },
        { content: 7 },
    ]) {
        refused(await send(session, { ...rest, ...members }), 400, 'request_rejected');
    }
    refused(await send(session, { ...rest, parts: Array(33).fill(part) }), 400, 'request_rejected');
    assert.deepEqual(typesOf(await turnOf(session, { parts: Array(32).fill(part) })).at(-1), 'turn.completed');
});

async function turnOf(session: string, members: object): Promise<any[]> {
    const { content, ...rest } = message('x');
    const head = await headOf(world.app, session);
    await command(world.app, session, { ...rest, ...members });
    return eventsUntil(world.app, session, endsTurn, head);
}

test('api 2.4: data may be any JSON, null too, and the record holds what was sent', async () => {
    const session = await newSession(world.app);
    for (const data of [null, 0, '', false, [], { a: [1, { b: null }] }]) {
        const { payload } = only(await turnOf(session, { data }), 'command.message');
        assert.ok('data' in payload);
        assert.deepEqual(payload.data, data);
    }
    const parts = [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
    ];
    assert.deepEqual(only(await turnOf(session, { parts }), 'command.message').payload.parts, parts);
});

test('overview, Decisions already made: a file part that names a missing artifact is 404', async () => {
    const session = await newSession(world.app);
    const { content, ...rest } = message('x');
    const parts = [{ type: 'file', artifactId: `af_${'0'.repeat(26)}` }];
    refused(await send(session, { ...rest, parts }), 404, 'request_rejected');
});

test('api 2.4: bodies are strict, and their problems are told at once', async () => {
    const session = await newSession(world.app);
    refused(await send(session, { ...message('x'), extra: 1 }), 400, 'request_rejected');
    refused(await send(session, { ...message('x'), type: 'restart' }), 400, 'request_rejected');
    const wrong = { type: 'message', requestId: '', idempotencyKey: 'x'.repeat(257), content: 'a', manifest: [] };
    assert.deepEqual(problemPaths(await send(session, wrong)), ['idempotencyKey', 'manifest', 'requestId']);
    const approve = { type: 'approve', requestId: 'r', idempotencyKey: 'k', approved: 'yes' };
    assert.deepEqual(problemPaths(await send(session, approve)), ['approved', 'interactionId']);
});

test('api 2.4: a message during a turn is 409, with the active turn', async () => {
    const session = await newSession(world.app);
    const { turnId } = await command(world.app, session, message(HOLD));
    const body = refused(await send(session, message('second', { requestId: 'mine' })), 409, 'request_rejected');
    assert.equal(body.activeTurnId, turnId);
    assert.equal(body.requestId, 'mine');
    await command(world.app, session, cancel());
});

test('api 2.4: approve and respond are 409 where nothing is awaited', async () => {
    const session = await newSession(world.app);
    const head = { requestId: 'r', idempotencyKey: 'k', interactionId: 'none' };
    refused(await send(session, { ...head, type: 'approve', approved: true }), 409, 'request_rejected');
    refused(await send(session, { ...head, type: 'respond', value: null }), 409, 'request_rejected');
});

test('api 2.4: cancel ends the turn at once, and its own answer has no turn', async () => {
    const session = await newSession(world.app);
    const { turnId } = await command(world.app, session, message(HOLD));
    const answer = await command(world.app, session, cancel({ reason: 'enough' }));
    assert.equal(answer.turnId, null);
    const last = (await eventsUntil(world.app, session, endsTurn)).at(-1);
    assert.deepEqual([last.type, last.turnId, last.cursor], ['turn.cancelled', turnId, answer.cursor]);
    assert.deepEqual(last.payload, { reason: 'enough' });
    assert.deepEqual(typesOf(await turn(world.app, session, 'next')), [
        'command.message',
        'message.assistant',
        'turn.completed',
    ]);
});

test('decisions, Cancel: without a turn it is 200, an event without a turn, and the status cancelled', async () => {
    const session = await newSession(world.app);
    const { cursor } = await command(world.app, session, cancel());
    const [event] = await eventsUntil(world.app, session, endsTurn);
    assert.deepEqual([event.type, event.turnId, event.cursor, event.payload], ['turn.cancelled', null, cursor, {}]);
    assert.equal(done(await world.app.get(`/v1/sessions/${session}`)).status, 'cancelled');
});

test('api 1.9: the same key and body get the first answer again, during the turn and after it', async () => {
    const session = await newSession(world.app);
    const body = message([{ delayMs: 50 }, { text: 'once' }], { requestId: 'first' });
    const first = await command(world.app, session, body);
    assert.deepEqual(await command(world.app, session, body), first);
    assert.deepEqual(await command(world.app, session, { ...body, requestId: 'second' }), first);
    await eventsUntil(world.app, session, endsTurn);
    assert.deepEqual(await command(world.app, session, body), first);
    const items = done(await world.app.get(`/v1/sessions/${session}/items`)).items;
    assert.equal(typesOf(items).filter((type) => type === 'command.message').length, 1);
});

test('api 1.9: bodies are compared as canonical JSON', async () => {
    const session = await newSession(world.app);
    const post = (text: string) => world.app.post(`/v1/sessions/${session}/commands`, undefined, { text });
    const first = done(await post('{"type":"message","requestId":"a","idempotencyKey":"k","data":{"n":10,"a":"é"}}'));
    const again = '{ "data": {"a":"\\u00e9", "n":1.0e1}, "idempotencyKey":"k", "requestId":"b", "type":"message" }';
    assert.deepEqual(done(await post(again)), first);
});

test('api 1.9: the same key with another body is 409, and the message begins "Idempotency key"', async () => {
    const session = await newSession(world.app);
    const body = message('one');
    await command(world.app, session, body);
    await eventsUntil(world.app, session, endsTurn);
    for (const other of [
        { ...body, content: 'two' },
        { ...cancel(), idempotencyKey: body.idempotencyKey },
    ]) {
        assert.match(refused(await send(session, other), 409, 'request_rejected').message, /^Idempotency key/);
    }
});

test('api 1.9: a key belongs to its session', async () => {
    const body = message('x');
    const turns = [];
    for (const session of [await newSession(world.app), await newSession(world.app)]) {
        turns.push((await command(world.app, session, body)).turnId);
    }
    assert.notEqual(turns[0], turns[1]);
});

test('decisions, Idempotency: a key that was refused may be used again', async () => {
    const session = await newSession(world.app);
    await command(world.app, session, message(HOLD));
    const body = message('later');
    refused(await send(session, body), 409, 'request_rejected');
    await command(world.app, session, cancel());
    await command(world.app, session, body);
});

test('api 1.9: of many copies sent at once, one begins a turn and all get its answer', async () => {
    const session = await newSession(world.app);
    const body = message('x');
    const answers = await Promise.all(Array.from({ length: 8 }, () => command(world.app, session, body)));
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.deepEqual(typesOf(events), ['command.message', 'message.assistant', 'turn.completed']);
});

/** A manifest with two HTTP tools. */
function toolManifest(): any {
    const manifest = plainManifest(fresh('agent'));
    const tool = (name: string) => ({
        name,
        inputSchema: { type: 'object' },
        http: { url: `https://x.example/${name}` },
    });
    manifest.capabilities[0].tools = [tool('a'), tool('b')];
    return manifest;
}

test('sandbox-and-definitions d1, Variant rule: a message may bring a narrower manifest', async () => {
    const manifest = toolManifest();
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const narrower = structuredClone(manifest);
    narrower.capabilities[0].tools.pop();
    narrower.capabilities[0].instructions = ['Other.'];
    narrower.name = 'Other';
    const events = await turn(world.app, session, 'x', { manifest: narrower });
    assert.deepEqual(only(events, 'command.message').payload.manifest, narrower);
    assert.equal(events.at(-1).type, 'turn.completed');
});

test('sandbox-and-definitions d1, I45: a manifest that widens is 400', async () => {
    const manifest = toolManifest();
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const widened: ((variant: any) => void)[] = [
        (variant) => variant.capabilities.push({ id: 'more', type: 'agent' }),
        (variant) => (variant.id = 'other'),
        (variant) => (variant.manifestSchemaVersion = 6),
        (variant) => (variant.capabilities[0].type = 'agent-plugin'),
        (variant) => (variant.capabilities[0].tools[0].http.url = 'https://evil.example'),
        (variant) =>
            variant.capabilities[0].tools.push({ name: 'c', inputSchema: {}, http: { url: 'https://x.example' } }),
    ];
    for (const widen of widened) {
        const variant = structuredClone(manifest);
        widen(variant);
        refused(await send(session, message('x', { manifest: variant })), 400, 'request_rejected');
    }
});
