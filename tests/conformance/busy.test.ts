// Messages that come while a turn runs: refused, queued, read by the running turn, taken back (decisions, Busy
// sessions).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { newEndpoint } from './support/endpoint.ts';
import type { Endpoint } from './support/endpoint.ts';
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

const path = (session: string) => `/v1/sessions/${session}`;
const send = (session: string, body: unknown) => world.app.post(`${path(session)}/commands`, body);
const view = async (session: string) => done(await world.app.get(path(session)));

/** A session whose turn waits for its endpoint, after its first model call. */
async function busySession(): Promise<{ session: string; endpoint: Endpoint; turnId: string }> {
    const endpoint = await newEndpoint();
    endpoint.close();
    const manifest = plainManifest(fresh('agent'));
    manifest.capabilities[0].tools = [{ name: 'order', inputSchema: {}, http: { url: endpoint.url } }];
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const { turnId } = await command(world.app, session, message([{ tools: [{ name: 'order' }] }, { text: 'first' }]));
    await endpoint.receivedAtLeast(1);
    return { session, endpoint, turnId };
}

/** The events of a session until it has ended so many turns. */
function untilTurns(session: string, count: number): Promise<any[]> {
    let ended = 0;
    return eventsUntil(world.app, session, (event) => endsTurn(event) && ++ended === count);
}

test('whenBusy reject, or left out, is 409 with the active turn', async () => {
    const { session, turnId } = await busySession();
    for (const members of [{}, { whenBusy: 'reject' }]) {
        const body = refused(await send(session, message('second', members)), 409, 'request_rejected');
        assert.equal(body.activeTurnId, turnId);
    }
    const unknown = refused(await send(session, message('x', { whenBusy: 'later' })), 400, 'request_rejected');
    for (const word of ['reject', 'queue', 'steer', 'later']) assert.match(unknown.message, new RegExp(word));
    assert.equal((await view(session)).queue, undefined);
    await command(world.app, session, cancel());
});

test('a queued message waits, and begins the turn that its answer named', async () => {
    const { session, endpoint } = await busySession();
    const bodies = ['second', 'third'].map((text) => message(text, { whenBusy: 'queue' }));
    const answers = [];
    for (const body of bodies) answers.push(await command(world.app, session, body));
    assert.deepEqual(done(await send(session, bodies[0])), answers[0], 'a repetition is answered as before');
    const { queue } = await view(session);
    assert.deepEqual(
        queue.map((waiting: any) => [waiting.mode, waiting.content, waiting.requestId]),
        bodies.map((body) => ['queue', body.content, body.requestId]),
    );
    endpoint.open();
    const events = await untilTurns(session, 3);
    const messages = events.filter((event) => event.type === 'command.message');
    assert.deepEqual(
        messages.slice(1).map((event) => [event.payload.content, event.payload.idempotencyKey, event.turnId]),
        bodies.map((body, at) => [body.content, body.idempotencyKey, answers[at].turnId]),
    );
    const queued = events.filter((event) => event.type === 'message.queued');
    assert.deepEqual(queued.map((event) => event.cursor), answers.map((answer) => answer.cursor));
    assert.deepEqual(queued.map((event) => event.payload.messageId), queue.map((waiting: any) => waiting.id));
    assert.equal((await view(session)).queue, undefined);
});

test('a message that steers is read before the next model call of the running turn', async () => {
    const { session, endpoint, turnId } = await busySession();
    const body = message('to the left', { whenBusy: 'steer' });
    const answer = await command(world.app, session, body);
    assert.equal(answer.turnId, turnId);
    endpoint.open();
    const events = await untilTurns(session, 1);
    assert.deepEqual(typesOf(events), [
        'command.message',
        'message.assistant',
        'message.queued',
        'tool.completed',
        'message.steered',
        'message.assistant',
        'turn.completed',
    ]);
    const steered = only(events, 'message.steered');
    assert.equal(steered.payload.idempotencyKey, body.idempotencyKey);
    assert.equal(only(events, 'message.queued').payload.messageId, steered.payload.messageId);
    // The fixture model echoes the message that counts, the last.
    assert.equal(events.at(-1).payload.output, 'to the left');
    const varied = message('x', { whenBusy: 'steer', manifest: plainManifest('a') });
    refused(await send(session, varied), 400, 'request_rejected');
});

test('on a free session, a message begins a turn whatever it says', async () => {
    const session = await newSession(world.app);
    for (const whenBusy of ['queue', 'steer', 'reject']) {
        const events = await turn(world.app, session, whenBusy, { whenBusy });
        assert.deepEqual(typesOf(events), ['command.message', 'message.assistant', 'turn.completed']);
    }
});

test('a waiting message can be taken back once', async () => {
    const { session, endpoint } = await busySession();
    for (const text of ['second', 'third']) await command(world.app, session, message(text, { whenBusy: 'queue' }));
    const { queue } = await view(session);
    const place = `${path(session)}/queue/${queue[0].id}`;
    refused(await world.person('bob').delete(place), 404, 'request_rejected');
    assert.deepEqual(done(await world.app.delete(place)), { id: queue[0].id, deleted: true });
    refused(await world.app.delete(place), 404, 'request_rejected');
    endpoint.open();
    const events = await untilTurns(session, 2);
    assert.deepEqual(only(events, 'message.removed').payload, { messageId: queue[0].id, reason: 'removed' });
    const contents = events.filter((event) => event.type === 'command.message').map((event) => event.payload.content);
    assert.deepEqual(contents.slice(1), ['third']);
});

test('a cancel drops what waits, and says so', async () => {
    const { session } = await busySession();
    await command(world.app, session, message('second', { whenBusy: 'queue' }));
    await command(world.app, session, message('left', { whenBusy: 'steer' }));
    const head = await headOf(world.app, session);
    await command(world.app, session, cancel());
    const events = done(await world.app.get(`${path(session)}/items?cursor=${head}`)).items;
    const removed = events.filter((event: any) => event.type === 'message.removed');
    assert.deepEqual(removed.map((event: any) => event.payload.reason), ['cancelled', 'cancelled']);
    const { status, queue } = await view(session);
    assert.deepEqual([status, queue], ['cancelled', undefined]);
});

test('what waits survives a kill', async () => {
    const { session, endpoint } = await busySession();
    const answer = await command(world.app, session, message('second', { whenBusy: 'queue' }));
    const before = await view(session);
    await world.server.kill();
    await world.server.start();
    assert.deepEqual((await view(session)).queue, before.queue);
    endpoint.open();
    await command(world.app, session, cancel());
    assert.equal((await view(session)).queue, undefined);
    assert.ok(answer.turnId);
});
