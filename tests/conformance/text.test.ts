// Text and JSON are kept byte for byte, and limits are where they are documented (decisions, Text and JSON; api 1.13).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { rawRequest } from './support/raw.ts';
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
} from './support/world.ts';

const world = await openWorld();

const MIB = 1024 * 1024;
const ODD = [
    '\ud800',
    '\udc00',
    'a\ud800b',
    '\u0000',
    'nul\u0000nul',
    '\ufeff',
    '\u2028',
    '😀',
    'e\u0301',
    '\ufffd',
    '\u007f',
];

test('decisions, Text and JSON: a lone surrogate, a NUL and other odd text come back as they were sent', async () => {
    const session = await newSession(world.app);
    for (const text of ODD) {
        const { content, ...rest } = message('x');
        await command(world.app, session, { ...rest, data: { [text]: text } });
        const head = done(await world.app.get(`/v1/sessions/${session}/items`)).items.at(-1);
        await eventsUntil(world.app, session, (event) => endsTurn(event) && event.seq >= head.seq);
    }
    const { items } = done(await world.app.get(`/v1/sessions/${session}/items`));
    const sent = items
        .filter((event: any) => event.type === 'command.message')
        .map((event: any) => event.payload.data);
    assert.deepEqual(
        sent,
        ODD.map((text) => ({ [text]: text })),
    );
});

test('decisions, Text and JSON: content is echoed by the fixture with its lone surrogate and NUL', async () => {
    const session = await newSession(world.app);
    for (const text of ['a\ud800b', 'a\u0000b']) {
        const events = await turn(world.app, session, text);
        assert.equal(only(events, 'command.message').payload.content, text);
        assert.equal(events.at(-1).type, 'turn.completed');
    }
});

const VERBATIM = [
    '{"b":1.0,"a":1e2,"c":-0,"d":1E+400}',
    '{ "spaced" :  [ 1 ,\t2 ] }',
    '{"esc":"\\u0041\\/\\u00e9\\ud83d\\ude00\\u0000\\ud800"}',
    '{"big":123456789012345678901234567890,"small":0.1000000000000000055511151231257827}',
    '[null,true,false,"",{},[]]',
];

test('decisions, Text and JSON: JSON in data round-trips byte for byte', async () => {
    for (const data of VERBATIM) {
        const session = await newSession(world.app);
        const text = `{"type":"message","requestId":"r","idempotencyKey":"k","data":${data}}`;
        done(await world.app.post(`/v1/sessions/${session}/commands`, undefined, { text }));
        await eventsUntil(world.app, session, endsTurn);
        const answer = await world.app.get(`/v1/sessions/${session}/items`);
        assert.ok(answer.text.includes(`"data":${data}`), `${data} is not in ${answer.text}`);
        const response = await world.app.open('GET', `/v1/sessions/${session}/events`);
        const { value } = await response.body!.getReader().read();
        assert.ok(new TextDecoder().decode(value).includes(`"data":${data}`), data);
    }
});

test('decisions, Text and JSON: of a member that comes twice the last counts', async () => {
    const session = await newSession(world.app);
    const text = '{"type":"message","requestId":"r","idempotencyKey":"k","content":"first","content":"last"}';
    done(await world.app.post(`/v1/sessions/${session}/commands`, undefined, { text }));
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.equal(only(events, 'command.message').payload.content, 'last');
});

test('decisions, Text and JSON: 128 levels are read, more are 400', async () => {
    const session = await newSession(world.app);
    const { content, ...rest } = message('x');
    // The body itself is the first level.
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    const send = (levels: number) => {
        const text = JSON.stringify(rest).replace(/}$/, `,"data":${nested(levels)}}`);
        return world.app.post(`/v1/sessions/${session}/commands`, undefined, { text });
    };
    refused(await send(128), 400, 'request_rejected');
    refused(await send(100_000), 400, 'request_rejected');
    done(await send(127));
});

test('api 1.8: a body that is not JSON is 400 "Invalid JSON"', async () => {
    const session = await newSession(world.app);
    for (const text of ['{', '{"a":1,}', "{'a':1}", '{"a":NaN}', '\u00ff', '{} x', '{"a":"\n"}', '{"a":01}']) {
        const answer = await world.app.post(`/v1/sessions/${session}/commands`, undefined, { text });
        assert.equal(refused(answer, 400, 'request_rejected').message, 'Invalid JSON', text);
    }
});

test('api 1.8: a body that is no UTF-8 is 400 "Invalid JSON"', async () => {
    const { host } = new URL(world.server.url);
    const body = Buffer.from([0x22, 0xff, 0x22]);
    const lines = [`Host: ${host}`, `Authorization: Bearer ${world.server.applicationKey}`, 'Nylorun-Protocol: 10'];
    const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    const answer = await rawRequest(world.server.url, ['PUT /v1/agents/a HTTP/1.1', ...lines, ...type], body);
    assert.deepEqual([answer.status, answer.body.message], [400, 'Invalid JSON']);
});

/** A message whose whole body has this many bytes. */
function bodyOfBytes(bytes: number): string {
    const empty = JSON.stringify(message(' '));
    return empty.replace('" "', () => `"${'x'.repeat(bytes - empty.length + 1)}"`);
}

test('api 1.13: a body of 1 MiB is taken, and one byte more is 413 request_rejected', async () => {
    const session = await newSession(world.app);
    const send = (text: string) => world.app.post(`/v1/sessions/${session}/commands`, undefined, { text });
    refused(await send(bodyOfBytes(MIB + 1)), 413, 'request_rejected');
    refused(await send(bodyOfBytes(4 * MIB)), 413, 'request_rejected');
    done(await send(bodyOfBytes(MIB)));
    const events = await eventsUntil(world.app, session, endsTurn);
    assert.equal(
        only(events, 'command.message').payload.content.length,
        only(events, 'turn.completed').payload.output.length,
    );
});

test('api 1.13: a chunked body above 1 MiB is 413 too', async () => {
    const { host } = new URL(world.server.url);
    const lines = [
        `Host: ${host}`,
        `Authorization: Bearer ${world.server.applicationKey}`,
        'Nylorun-Protocol: 10',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
    ];
    const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
    const answer = await rawRequest(
        world.server.url,
        ['PUT /v1/agents/a HTTP/1.1', ...lines],
        `${chunk.repeat(17)}0\r\n\r\n`,
    );
    assert.deepEqual([answer.status, answer.body.code], [413, 'request_rejected']);
});

const LONGEST = ['x'.repeat(512), 'é'.repeat(512), '😀'.repeat(256)];
const TOO_LONG = ['x'.repeat(513), 'é'.repeat(513), '😀'.repeat(257)];

test('decisions, Text and JSON: ids have at most 512 UTF-16 units', async () => {
    const agentId = await newAgent(world.app);
    const open = (id: string, members: object = {}) =>
        world.app.put(`/v1/sessions/${encodeURIComponent(id)}`, {
            requestId: 'r',
            agentId,
            ownerUserId: 'ann',
            ...members,
        });
    for (const id of LONGEST) {
        assert.equal(done(await open(id)).id, id);
        assert.equal(done(await open(fresh('s'), { ownerUserId: id })).ownerUserId, id);
        await newAgent(world.app, plainManifest(id));
        const events = await turn(world.app, id, 'x');
        assert.equal(Buffer.from(events[0].cursor, 'base64url').toString(), `${id}:0`);
    }
    for (const id of TOO_LONG) {
        refused(await open(id), 400, 'request_rejected');
        refused(await world.app.get(`/v1/sessions/${encodeURIComponent(id)}`), 400, 'request_rejected');
        refused(await open('s', { ownerUserId: id }), 400, 'request_rejected');
        refused(await open('s', { agentId: id }), 400, 'request_rejected');
        const body = { requestId: 'r', manifest: plainManifest(id), implementationVersion: '1' };
        refused(await world.app.put(`/v1/agents/${encodeURIComponent(id)}`, body), 400, 'request_rejected');
    }
});

test('decisions, Text and JSON: ids with NUL, control characters or lone surrogates are 400', async () => {
    const agentId = await newAgent(world.app);
    for (const id of ['a\u0000', 'a\n', '\u007f', 'a\u009f', 'a\ud800']) {
        const body = { requestId: 'r', agentId, ownerUserId: id };
        refused(await world.app.put('/v1/sessions/s', body), 400, 'request_rejected');
    }
    for (const path of ['/v1/sessions/a%00', '/v1/sessions/a%0a', '/v1/sessions/%7f', '/v1/sessions/%c2%9f']) {
        refused(await world.app.get(path), 400, 'request_rejected');
    }
});

test('api 1.9: an idempotency key has 1 to 256 characters', async () => {
    const session = await newSession(world.app);
    const send = (idempotencyKey: string) =>
        world.app.post(`/v1/sessions/${session}/commands`, { type: 'cancel', requestId: 'r', idempotencyKey });
    for (const key of ['k', 'x'.repeat(256), '😀'.repeat(128)]) done(await send(key));
    for (const key of ['', 'x'.repeat(257), '😀'.repeat(129)]) refused(await send(key), 400, 'request_rejected');
});

test('decisions, Content is kept as written: a NUL in a tool call or its name holds up no turn', async () => {
    const session = await newSession(world.app, { sandbox: {} });
    const calls = [
        { name: 'bash', input: { command: 'printf a\0b' } },
        { name: 'write', input: { path: 'a\0b', content: 'x' } },
        { name: 're\0ad', input: { path: 'a' } },
    ];
    const events = await turn(world.app, session, [{ tools: calls }, { text: 'end' }]);
    assert.equal(events.at(-1).payload.output, 'end');
    const asked = events.find((event) => event.type === 'message.assistant').payload.toolCalls;
    assert.deepEqual(asked.map((call: any) => [call.name, call.input]), calls.map(({ name, input }) => [name, input]));
    const answer = await world.app.post(`/v1/sessions/${session}/sandbox/write`, { path: 'a\0b', content: 'x' });
    assert.equal(done(answer).kind, 'failed');
});
