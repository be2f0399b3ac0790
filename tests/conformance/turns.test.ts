// What a turn writes: envelopes, payloads, order, failures (api 4).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done } from './support/client.ts';
import { newEndpoint } from './support/endpoint.ts';
import { fresh, newAgent, newSession, only, openWorld, plainManifest, turn, typesOf } from './support/world.ts';

const world = await openWorld();

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ISO_MS = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

test('api 4.1: the envelope of every event', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const { tenant } = done(await world.management.get('/v1/tenant'));
    const script = [{ tools: [{ name: 'write', input: { path: 'a', content: 'x' } }] }, { text: 'done' }];
    const events = await turn(world.app, session, script);
    const { turnId } = events[0];
    const api = new Set(['command.message', 'turn.cancelled']);
    for (const event of events) {
        const { eventId, epoch, seq, time, type, payload, cursor, ...rest } = event;
        assert.match(eventId, UUID);
        assert.match(time, ISO_MS);
        assert.equal(cursor, Buffer.from(`${session}:${seq}`).toString('base64url'));
        assert.deepEqual(
            rest,
            {
                schema: 'nylorun.event/2',
                tenantId: tenant.id,
                sessionId: session,
                runId: null,
                turnId,
                incarnation: 0,
                schemaVersion: 1,
                source: { kind: api.has(type) ? 'api' : 'loop', id: 'runtime' },
                evidence: 'observed',
                visibility: 'public',
                retention: 'full',
            },
            type,
        );
    }
    assert.match(turnId, UUID);
    assert.equal(new Set(events.map((event) => event.eventId)).size, events.length);
});

test('api 4.3: seq begins at 0 and rises; only internal events leave holes, and are never served', async () => {
    const session = await newSession(world.app);
    const events = [...(await turn(world.app, session, 'a')), ...(await turn(world.app, session, 'b'))];
    assert.equal(events[0].seq, 0);
    for (let at = 1; at < events.length; at++) assert.ok(events[at].seq > events[at - 1].seq);
    assert.ok(!typesOf(events).includes('transcript.updated'));
});

test('api 4.2: a turn of text, with the model, the usage and the output', async () => {
    const session = await newSession(world.app);
    const events = await turn(world.app, session, 'hello there');
    assert.deepEqual(typesOf(events), ['command.message', 'message.assistant', 'turn.completed']);
    const { invocationId, usage, model, ...rest } = events[1].payload;
    assert.deepEqual(rest, { text: 'hello there', finishReason: 'stop', toolCalls: [] });
    assert.ok(Object.values<number>(usage).some((count) => count > 0));
    assert.deepEqual(Object.keys(model).sort(), ['model', 'provider']);
    assert.deepEqual(events[2].payload, { output: 'hello there' });
});

test('api 4.3: an answer precedes the outcomes of its calls, and these the next answer', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const write = (path: string) => ({ name: 'write', input: { path, content: path } });
    const events = await turn(world.app, session, [
        { text: 'two', tools: [write('a'), write('b')] },
        { tools: [{ name: 'bash', input: { command: 'cat a b' } }] },
        { text: 'end' },
    ]);
    const loop = typesOf(events).filter((type) => !type.startsWith('sandbox.'));
    assert.deepEqual(loop, [
        'command.message',
        'message.assistant',
        'tool.completed',
        'tool.completed',
        'message.assistant',
        'tool.completed',
        'message.assistant',
        'turn.completed',
    ]);
    const said = events.filter((event) => event.type === 'message.assistant').map((event) => event.payload);
    const ended = events.filter((event) => event.type === 'tool.completed').map((event) => event.payload);
    assert.deepEqual([said[0].text, said[0].finishReason], ['two', 'tool-calls']);
    const calls = said[0].toolCalls.map((call: any) => call.callId);
    assert.deepEqual(
        ended
            .slice(0, 2)
            .map((payload) => payload.callId)
            .sort(),
        calls.sort(),
    );
    assert.deepEqual(ended[2].output, { exitCode: 0, stdout: 'ab', stderr: '' });
    assert.deepEqual([ended[2].toolName, ended[2].capabilityId], ['bash', 'nylorun.sandbox']);
});

test('sandbox-and-definitions a4: the workspace says that it is made and runs, then what ran in it', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const events = await turn(world.app, session, [
        { tools: [{ name: 'bash', input: { command: 'exit 7' } }] },
        { tools: [{ name: 'read', input: { path: 'none' } }] },
        { text: 'end' },
    ]);
    const states = events.filter((event) => event.type === 'sandbox.state').map((event) => event.payload);
    assert.deepEqual(
        states.map((payload) => payload.state),
        ['creating', 'running'],
    );
    assert.deepEqual([states[1].backend, states[1].isolation], ['virtual', 'process']);
    const ran = events.filter((event) => event.type === 'sandbox.exec').map((event) => event.payload);
    const [bash, read] = ran.map(({ durationMs, ...payload }) => payload);
    assert.deepEqual(bash, { tool: 'bash', command: 'exit 7', exitCode: 7, outcome: 'completed' });
    assert.deepEqual(read, { tool: 'read', path: 'none', outcome: 'failed', code: 'sandbox.not_found' });
});

test('sandbox-and-definitions a5: running is recorded before the first call ends', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const events = await turn(world.app, session, [
        { tools: [{ name: 'bash', input: { command: 'sleep 0.5' } }] },
        { text: 'x' },
    ]);
    const running = events.find((event) => event.type === 'sandbox.state' && event.payload.state === 'running');
    const waited = Date.parse(only(events, 'sandbox.exec').time) - Date.parse(running.time);
    assert.ok(waited >= 400, `${waited} ms before the call ended`);
});

test('sandbox-and-definitions a4: sandbox.exec holds the first 500 units of a command', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const command = `echo ${'x'.repeat(600)}`;
    const events = await turn(world.app, session, [
        { tools: [{ name: 'bash', input: { command } }] },
        { text: 'end' },
    ]);
    assert.equal(only(events, 'sandbox.exec').payload.command, command.slice(0, 500));
});

test('api 4.2: a failed tool call is data of the turn, which goes on', async () => {
    const manifest = plainManifest(fresh('agent'));
    manifest.capabilities[0].tools = [{ name: 'far', inputSchema: {}, http: { url: 'https://x.example' } }];
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest), sandbox: {} });
    const code = async (name: string, input: unknown) => {
        const events = await turn(world.app, session, [{ tools: [{ name, input }] }, { text: 'go on' }]);
        assert.equal(events.at(-1).type, 'turn.completed');
        return only(events, 'tool.completed').payload.error.code;
    };
    assert.equal(await code('none', {}), 'tool.unknown');
    assert.equal(await code('bash', {}), 'tool.invalid-arguments');
    assert.equal(await code('read', { path: 'none' }), 'sandbox.not_found');
});

test('sandbox-and-definitions d1: an HTTP tool is called with its input as a JSON body', async () => {
    const endpoint = await newEndpoint();
    const manifest = plainManifest(fresh('agent'));
    const http = { url: `${endpoint.url}/orders`, method: 'PUT' };
    manifest.capabilities[0].tools = [{ name: 'order', inputSchema: { required: ['n'] }, http }];
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const tools = [{ name: 'order', input: { n: 1 } }];
    const events = await turn(world.app, session, [{ tools }, { tools: [{ name: 'order', input: {} }] }]);
    const results = events.filter((event) => event.type === 'tool.completed').map((event) => event.payload);
    assert.deepEqual(results[0].output, { id: 7 });
    assert.equal(results[1].error.code, 'tool.invalid-arguments');
    assert.equal(endpoint.received.length, 1);
    const [{ method, headers, body }] = endpoint.received;
    assert.deepEqual([method, headers['content-type'], body], ['PUT', 'application/json', '{"n":1}']);
    assert.equal(headers['nylorun-session-id'], session);
    assert.equal(headers['nylorun-turn-id'], events[0].turnId);
    assert.equal(headers['nylorun-agent-id'], manifest.id);
    assert.ok(String(headers['idempotency-key']).endsWith(results[0].invocationId));
});

test('decisions, Manifests: a tool without an executor is saved, and tool.unavailable at turn time', async () => {
    const manifest = plainManifest(fresh('agent'));
    const child = { ...plainManifest(fresh('child')), description: 'c' };
    const inputSchema = {
        type: 'object',
        properties: { task: { type: 'string', minLength: 1 } },
        required: ['task'],
        additionalProperties: false,
    };
    manifest.capabilities[0].tools = [{ name: child.id, description: 'c', inputSchema, agent: child }];
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const events = await turn(world.app, session, [
        { tools: [{ name: child.id, input: { task: 't' } }] },
        { text: 'x' },
    ]);
    assert.equal(only(events, 'tool.completed').payload.error.code, 'tool.unavailable');
    assert.equal(events.at(-1).type, 'turn.completed');
});

const FAILURES = [
    'context_overflow',
    'rate_limited',
    'overloaded',
    'timeout',
    'transient',
    'content_policy',
    'auth',
    'invalid_request',
    'invalid_output',
];
const RETRYABLE = new Set(['rate_limited', 'overloaded', 'timeout', 'transient']);

test('api 4.2: every model failure fails the turn as model.CODE, and model.failed has the code alone', async () => {
    await Promise.all(
        FAILURES.map(async (code) => {
            const session = await newSession(world.app);
            const events = await turn(world.app, session, [{ fail: code }]);
            assert.deepEqual(typesOf(events).slice(-2), ['model.failed', 'turn.failed'], code);
            assert.equal(events.at(-2).payload.code, code);
            assert.equal(events.at(-2).payload.retryable, RETRYABLE.has(code), code);
            assert.equal(events.at(-1).payload.error.code, `model.${code}`);
            assert.equal(done(await world.app.get(`/v1/sessions/${session}`)).status, 'failed');
        }),
    );
});

test('decisions, Turn output: the output is JSON when the agent has an outputSchema', async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const manifest = { ...plainManifest(fresh('agent')), outputSchema };
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const good = await turn(world.app, session, [{ structured: { n: 1 } }]);
    assert.deepEqual(only(good, 'turn.completed').payload, { output: { n: 1 } });
});

test('api 4.3: a turn has exactly one end, and it is last', async () => {
    const session = await newSession(world.app);
    for (const script of ['a', [{ fail: 'auth' }], [{ text: 'x' }]]) await turn(world.app, session, script);
    const { items } = done(await world.app.get(`/v1/sessions/${session}/items`));
    for (const turnId of new Set(items.map((event: any) => event.turnId))) {
        const types = typesOf(items.filter((event: any) => event.turnId === turnId));
        assert.equal(types[0], 'command.message');
        assert.deepEqual(
            types.filter((type) => /^turn\./.test(type)),
            [types.at(-1)],
        );
    }
});

test('api 4.1: the epoch rises with each turn that is taken', async () => {
    const session = await newSession(world.app);
    const epochs = [];
    for (const text of ['a', 'b']) epochs.push((await turn(world.app, session, text)).at(-1).epoch);
    assert.ok(epochs[0] >= 1 && epochs[1] > epochs[0], epochs.join());
});
