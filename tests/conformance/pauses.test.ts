// Turns that wait for a person, and conversations that are compacted (api 2.4, 4.2; engine b.7).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { newEndpoint } from './support/endpoint.ts';
import { eventsUntil } from './support/sse.ts';
import {
    cancel,
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
const endpoint = await newEndpoint();

const view = async (session: string) => done(await world.app.get(`/v1/sessions/${session}`));

function approve(interactionId: string, approved: boolean): any {
    return { type: 'approve', requestId: fresh('request'), idempotencyKey: fresh('key'), interactionId, approved };
}

/** A session whose turn asks for an approval of each of so many calls. */
async function pausedSession(calls: number): Promise<{ session: string; events: any[] }> {
    const manifest = plainManifest(fresh('agent'));
    manifest.capabilities[0].tools = [
        { name: 'pay', inputSchema: {}, http: { url: endpoint.url }, approval: 'always' },
    ];
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const tools = Array.from({ length: calls }, (_, n) => ({ name: 'pay', input: { n } }));
    await command(world.app, session, message([{ tools }, { text: 'last' }]));
    const events = await eventsUntil(world.app, session, (event) => event.type === 'turn.paused');
    return { session, events };
}

test('api 4.2: a call that needs an approval pauses its turn, and waits in the session view', async () => {
    const sent = endpoint.received.length;
    const { session, events } = await pausedSession(1);
    const [asked, ...more] = events.at(-1).payload.interactions;
    assert.deepEqual(more, []);
    assert.equal(asked.interaction.kind, 'approval');
    assert.equal(asked.callId, only(events, 'message.assistant').payload.toolCalls[0].callId);
    const { status, activeTurnId, waits } = await view(session);
    assert.deepEqual([status, activeTurnId, waits], ['paused', events[0].turnId, [asked]]);
    assert.equal(endpoint.received.length, sent);
    await command(world.app, session, cancel());
    assert.equal((await view(session)).waits, undefined);
});

test('api 2.4: approved calls are made, denied ones are not, in any order of the answers', async () => {
    const sent = endpoint.received.length;
    const { session, events: before } = await pausedSession(2);
    const ids = before.at(-1).payload.interactions.map((asked: any) => asked.interaction.id);
    refused(await world.app.post(`/v1/sessions/${session}/commands`, message('x')), 409, 'request_rejected');
    const { approved, ...question } = approve(ids[0], true);
    const otherKind = { ...question, type: 'respond', value: approved };
    refused(await world.app.post(`/v1/sessions/${session}/commands`, otherKind), 409, 'request_rejected');
    const answer = approve(ids[1], true);
    const accepted = await command(world.app, session, answer);
    assert.deepEqual(await command(world.app, session, answer), accepted, 'a repetition is answered as before');
    await command(world.app, session, approve(ids[0], false));
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.equal(events.at(-1).type, 'turn.completed');
    const results = events.filter((event) => event.type === 'tool.completed').map((event) => event.payload);
    const denied = results.filter((result) => result.error?.code === 'denied');
    assert.deepEqual([results.length, denied.length], [2, 1]);
    const came = endpoint.received.slice(sent).map((request) => request.body);
    assert.deepEqual(came, ['{"n":1}']);
    const approvals = events.filter((event) => event.type === 'command.approve');
    assert.deepEqual(approvals.map((event) => event.payload.approved), [true, false]);
    assert.equal(approvals[0].cursor, accepted.cursor);
    const late = approve(ids[0], true);
    refused(await world.app.post(`/v1/sessions/${session}/commands`, late), 409, 'request_rejected');
});

test('api 2.2: a paused turn waits over a kill', async () => {
    const { session, events } = await pausedSession(1);
    const before = await view(session);
    await world.server.kill();
    await world.server.start();
    assert.deepEqual(await view(session), before);
    await command(world.app, session, approve(events.at(-1).payload.interactions[0].interaction.id, true));
    const types = typesOf(await eventsUntil(world.app, session, endsTurn));
    assert.deepEqual(types.slice(-4), ['command.approve', 'tool.completed', 'message.assistant', 'turn.completed']);
});

test('engine b.7: a conversation that its window cannot hold is compacted, and the turn goes on', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const call = (content: string) => [{ name: 'write', input: { path: 'a', content } }];
    const events = await turn(world.app, session, [
        { tools: call('x'.repeat(4000)) },
        { tools: call('y'.repeat(4000)), window: 2000 },
        { text: 'last' },
    ]);
    const { trigger, tokensBefore, tokensAfter } = only(events, 'context.compacted').payload;
    assert.equal(trigger, 'threshold');
    assert.ok(tokensAfter < tokensBefore, `${tokensAfter} of ${tokensBefore}`);
    assert.equal(events.at(-1).payload.output, 'last');
});
