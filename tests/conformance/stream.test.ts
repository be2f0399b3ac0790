// Following a session over Server-Sent Events: frames, resume, cut connections, deltas (api 1.11).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done } from './support/client.ts';
import { seeded } from './support/random.ts';
import { FrameParser, eventsUntil, follow } from './support/sse.ts';
import type { Frame } from './support/sse.ts';
import { command, endsTurn, message, newSession, only, openWorld, turn, typesOf } from './support/world.ts';

const world = await openWorld();

test('the reader makes the same frames wherever its bytes are cut', () => {
    const text = ': keepalive\n\nid: a\nevent: x\ndata: {"a":1}\n\nevent: y\ndata: one\ndata: two\n\n';
    const expected = [
        { comment: 'keepalive' },
        { id: 'a', event: 'x', data: '{"a":1}' },
        { event: 'y', data: 'one\ntwo' },
    ];
    for (let at = 0; at <= text.length; at++) {
        const parser = new FrameParser();
        assert.deepEqual([...parser.push(text.slice(0, at)), ...parser.push(text.slice(at))], expected);
    }
});

test('api 1.11: the headers of the stream', async () => {
    const session = await newSession(world.app);
    const abort = new AbortController();
    const { headers } = await world.app.open('GET', `/v1/sessions/${session}/events`, { signal: abort.signal });
    abort.abort();
    assert.equal(headers.get('content-type'), 'text/event-stream');
    assert.equal(headers.get('cache-control'), 'no-cache');
    assert.equal(headers.get('x-accel-buffering'), 'no');
});

test('api 1.11: an open stream gets events as they happen', async () => {
    const session = await newSession(world.app);
    const following = eventsUntil(world.app, session, endsTurn);
    await command(world.app, session, message('live'));
    assert.deepEqual(typesOf(await following), ['command.message', 'message.assistant', 'turn.completed']);
});

test('api 1.11: many followers of one session each get every event once', async () => {
    const session = await newSession(world.app);
    const following = Array.from({ length: 10 }, () => eventsUntil(world.app, session, endsTurn));
    await command(world.app, session, message([{ delayMs: 30 }, { text: 'x' }]));
    const all = await Promise.all(following);
    for (const events of all) assert.deepEqual(events, all[0]);
});

test('api 1.11: ?cursor= wins over Last-Event-ID', async () => {
    const session = await newSession(world.app);
    const [first, second, third] = await turn(world.app, session, 'x');
    const begins = async (options: object) => {
        for await (const frame of follow(world.app, session, options)) return frame.id;
    };
    assert.equal(await begins({ lastEventId: second.cursor }), third.cursor);
    assert.equal(await begins({ lastEventId: second.cursor, query: `cursor=${first.cursor}` }), second.cursor);
    assert.equal(await begins({}), first.cursor);
});

/** Follows a session over connections that are cut after random numbers of bytes, until its turn ended. */
async function followCut(session: string, random: (below: number) => number, most: number): Promise<any[]> {
    const found: any[] = [];
    for (let connections = 0; connections < 5_000; connections++) {
        const lastEventId = found.at(-1)?.cursor;
        for await (const frame of follow(world.app, session, { lastEventId, cutAfterBytes: 1 + random(most) })) {
            if (frame.id !== undefined) found.push(JSON.parse(frame.data!));
            if (found.length > 0 && endsTurn(found.at(-1))) return found;
        }
    }
    throw new Error(`no end after ${found.length} events`);
}

const LONG = Array.from({ length: 12 }, (_, at) => ({
    tools: [{ name: 'write', input: { path: `f${at}`, content: 'é😀' } }],
}));

test('api 1.11: over connections cut at random bytes each event comes once and in order', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    await command(world.app, session, message([...LONG, { text: 'end' }]));
    const live = followCut(session, seeded(1), 3_000);
    const whole = await eventsUntil(world.app, session, endsTurn);
    assert.deepEqual(await live, whole);
    for (const seed of [2, 3, 4])
        assert.deepEqual(await followCut(session, seeded(seed), 2_500), whole, `seed ${seed}`);
});

test('api 1.11: two followers with other cuts and one whole one agree while events are being written', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const following = [followCut(session, seeded(5), 4_000), followCut(session, seeded(6), 2_000)];
    const whole = eventsUntil(world.app, session, endsTurn);
    await command(world.app, session, message([...LONG, { text: 'end' }]));
    for (const events of await Promise.all(following)) assert.deepEqual(events, await whole);
});

/** The frames of a turn's stream, deltas too. */
async function framesOf(session: string, query: string, script: unknown): Promise<Frame[]> {
    const found: Frame[] = [];
    const sent = command(world.app, session, message(script));
    for await (const frame of follow(world.app, session, { query })) {
        found.push(frame);
        if (frame.id !== undefined && endsTurn(JSON.parse(frame.data!))) break;
    }
    await sent;
    return found;
}

const SPOKEN = 'a text that is longer than one piece of sixteen characters';

test('decisions, Token deltas: with deltas=true pieces come without an id and make the text', async () => {
    const session = await newSession(world.app);
    const frames = await framesOf(session, 'deltas=true', [{ delayMs: 100 }, { text: SPOKEN }]);
    const deltas = frames.filter((frame) => frame.event === 'message.delta');
    assert.ok(deltas.length > 1);
    assert.ok(deltas.every((frame) => frame.id === undefined));
    const pieces = deltas.map((frame) => JSON.parse(frame.data!));
    const { turnId, epoch, payload } = only(
        frames.filter((frame) => frame.id !== undefined).map((frame) => JSON.parse(frame.data!)),
        'message.assistant',
    );
    for (const [index, { text, ...piece }] of pieces.entries()) {
        const { invocationId } = payload;
        assert.deepEqual(piece, { sessionId: session, turnId, epoch, invocationId, attempt: 1, index });
    }
    assert.equal(pieces.map((piece) => piece.text).join(''), SPOKEN);
});

test('decisions, Token deltas: without asking there are none, and the record never holds them', async () => {
    const session = await newSession(world.app);
    const frames = await framesOf(session, 'deltas=false', [{ delayMs: 20 }, { text: SPOKEN }]);
    assert.deepEqual(
        frames.map((frame) => frame.event),
        ['command.message', 'message.assistant', 'turn.completed'],
    );
    const { items } = done(await world.app.get(`/v1/sessions/${session}/items`));
    assert.ok(!typesOf(items).includes('message.delta'));
});

test('api 4: frames stay below the 2,000,000 characters that clients accept', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const script = [
        {
            tools: [
                { name: 'bash', input: { command: 'for i in $(seq 600); do printf "%01000d\\n" $i; done > big' } },
            ],
        },
        { tools: [{ name: 'read', input: { path: 'big', limit: 5000 } }] },
        { text: 'end' },
    ];
    for (const event of await turn(world.app, session, script)) {
        assert.ok(JSON.stringify(event).length < 2_000_000, event.type);
    }
});
