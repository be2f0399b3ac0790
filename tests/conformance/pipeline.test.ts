// The request pipeline (api 1.1): which failure answers first. Each request here is also wrong in what comes later.

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { rawRequest } from './support/raw.ts';
import { plainManifest, openWorld } from './support/world.ts';

const world = await openWorld('none');

const WRONG_KEY = 'f'.repeat(64);
const UNKNOWN_TENANT = `tn_${'0'.repeat(26)}`;

/** The lines of a request's head, with this server as the host. */
function head(line: string, ...more: string[]): string[] {
    return [`${line} HTTP/1.1`, `Host: ${new URL(world.server.url).host}`, ...more];
}

function raw(line: string, ...more: string[]) {
    return rawRequest(world.server.url, head(line, ...more));
}

test('api 1.1 step 1: an unknown Host is 421 before anything else', async () => {
    for (const host of ['Host: evil.example', 'Host: 127.0.0.1:1', 'Host: localhost', 'Host:']) {
        const answer = await rawRequest(world.server.url, [
            'OPTIONS /health HTTP/1.1',
            host,
            'Origin: https://a.example',
        ]);
        assert.deepEqual([answer.status, answer.body.code], [421, 'host_rejected'], host);
    }
});

test('api 1.4: the Host is compared trimmed and in lower case; three names of loopback are allowed', async () => {
    const { port } = new URL(world.server.url);
    for (const host of ['127.0.0.1', 'localhost', '[::1]', 'LocalHost', '  localhost']) {
        const answer = await rawRequest(world.server.url, ['GET /health HTTP/1.1', `Host: ${host}:${port}`]);
        assert.equal(answer.status, 200, host);
    }
});

test('api 1.4: a request without a Host is refused', async () => {
    const answer = await rawRequest(world.server.url, ['GET /health HTTP/1.1']);
    assert.ok([400, 421].includes(answer.status), String(answer.status));
});

test('api 1.1 step 2: an Origin outside /v1 is 403 before OPTIONS and before the media type', async () => {
    const origin = 'Origin: https://app.example';
    for (const line of ['OPTIONS /health', 'GET /ready', 'GET /openapi.json', 'GET /v1', 'GET /elsewhere']) {
        const answer = await raw(line, origin);
        assert.deepEqual([answer.status, answer.body.code], [403, 'origin_rejected'], line);
    }
});

test('api 1.1 step 3: OPTIONS is 204 with the methods, before media type and credential', async () => {
    for (const path of ['/health', '/v1/agents', '/v1/gone', '/elsewhere']) {
        const options = { text: 'x', headers: { 'content-type': 'text/plain' } };
        const answer = await world.nobody.send('OPTIONS', path, options);
        assert.equal(answer.status, 204, path);
        assert.equal(answer.headers.get('allow'), 'GET, POST, PUT, DELETE, OPTIONS', path);
        assert.equal(answer.text, '');
    }
    const browser = { headers: { origin: 'https://app.example' } };
    assert.equal((await world.nobody.send('OPTIONS', '/v1/agents', browser)).status, 204);
});

test('api 1.1 step 4: a body that is not JSON is 415 before /health answers and before the credential', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'text/json']) {
        const options = { text: '{}', headers: { 'content-type': type } };
        refused(await world.nobody.send('POST', '/health', options), 415, 'unsupported_media_type');
        refused(await world.nobody.put('/v1/agents/a', undefined, options), 415, 'unsupported_media_type');
        refused(await world.nobody.post('/v1/gone', undefined, options), 415, 'unsupported_media_type');
    }
    const chunked = await raw('POST /v1/agents', 'Transfer-Encoding: chunked', 'Content-Type: text/plain');
    assert.equal(chunked.status, 415);
});

test('api, Appendix B: a head that is too long is invalid_request, with 414 or 431', async () => {
    const long = 'x'.repeat(70_000);
    const path = await raw(`GET /v1/sessions/${long}`);
    assert.deepEqual([path.status, path.body.code], [414, 'invalid_request']);
    const header = await raw('GET /v1/sessions', `X-Long: ${long}`);
    assert.deepEqual([header.status, header.body.code], [431, 'invalid_request']);
});

test('api 1.1 step 4: a compressed body is 415 too', async () => {
    const options = { text: '{}', headers: { 'content-encoding': 'gzip' } };
    refused(await world.nobody.send('POST', '/health', options), 415, 'unsupported_media_type');
});

test('api 1.1 step 4: parameters of the media type, and its case, do not matter', async () => {
    const options = { text: '{}', headers: { 'content-type': 'Application/JSON; charset=utf-8' } };
    assert.equal((await world.nobody.send('POST', '/health', options)).status, 200);
});

test('api 1.1 step 6: a known route without protocol and credential is 401 with a challenge', async () => {
    for (const path of ['/v1/agents', '/v1/sessions/%zz', '/v1/me', '/v1/tenant']) {
        const answer = await world.nobody.get(path, { headers: { 'nylorun-tenant': UNKNOWN_TENANT } });
        refused(answer, 401, 'credential_required');
        assert.equal(answer.headers.get('www-authenticate'), 'Bearer', path);
    }
});

test('decisions, Small print: an unknown route without protocol and credential is 426', async () => {
    refused(await world.nobody.get('/v1/gone'), 426, 'protocol_unsupported');
});

test('api 1.1 step 7: a protocol that is missing, no number or out of range is 426 before the tenant', async () => {
    const wrong = { authorization: `Bearer ${WRONG_KEY}`, 'nylorun-tenant': UNKNOWN_TENANT };
    for (const protocol of [null, '3', '11', '', 'v10', '10.0', '-4', '+5', '1e1', '99999999999999999999']) {
        const answer = await world.nobody.get('/v1/agents', { headers: { ...wrong, 'nylorun-protocol': protocol } });
        refused(answer, 426, 'protocol_unsupported');
    }
    const only = await world.nobody.get('/v1/agents', { headers: { 'nylorun-protocol': '3' } });
    refused(only, 426, 'protocol_unsupported');
});

test('api 1.2: the body of a 426 names the protocols and features, and has no message', async () => {
    const answer = await world.app.get('/v1/agents', { headers: { 'nylorun-protocol': '3' } });
    const { protocol } = done(await world.nobody.get('/health'));
    assert.deepEqual(answer.body, { status: 'rejected', code: 'protocol_unsupported', protocol });
});

test('api 1.1 step 9: another tenant is an opaque 404 before the path and the credential', async () => {
    const headers = {
        authorization: `Bearer ${WRONG_KEY}`,
        'nylorun-protocol': '10',
        'nylorun-tenant': UNKNOWN_TENANT,
    };
    for (const path of ['/v1/agents', '/v1/sessions/%zz', '/v1/gone']) {
        refused(await world.nobody.get(path, { headers }), 404, 'not_found');
    }
});

test('api 1.1 step 9: the own tenant, or a blank one, passes', async () => {
    const { tenant } = done(await world.management.get('/v1/tenant'));
    for (const id of [tenant.id, ` ${tenant.id} `, '', '  ']) {
        done(await world.app.get('/v1/agents', { headers: { 'nylorun-tenant': id } }));
    }
});

test('api 1.1 step 10: malformed percent-encoding is 400 before the credential is looked at', async () => {
    const lines = [`Authorization: Bearer ${WRONG_KEY}`, 'Nylorun-Protocol: 10'];
    for (const path of ['/v1/sessions/%zz', '/v1/sessions/%', '/v1/sessions/a%2', '/v1/sessions/%ff/items']) {
        const answer = await raw(`GET ${path}`, ...lines);
        assert.deepEqual([answer.status, answer.body.code], [400, 'request_rejected'], path);
        assert.equal(answer.body.message, 'Malformed path');
    }
});

test('api 1.1 step 10: HEAD on a route without it is authenticated, then 404', async () => {
    assert.equal((await world.app.send('HEAD', '/v1/agents')).status, 404);
    const wrong = { headers: { authorization: `Bearer ${WRONG_KEY}` } };
    assert.equal((await world.app.send('HEAD', '/v1/agents', wrong)).status, 401);
});

test('api 1.1 step 11: credential, then scopes, then body', async () => {
    const body = { text: '{"broken":' };
    const wrong = { ...body, headers: { authorization: `Bearer ${WRONG_KEY}`, 'nylorun-subject': 'ann' } };
    refused(await world.app.put('/v1/agents/a', undefined, wrong), 401, 'credential_invalid');
    const person = world.person('ann', 'sessions:own');
    const { details } = refused(await person.put('/v1/agents/a', undefined, body), 403, 'scope_required');
    assert.deepEqual(details.scopes, ['agents:write']);
    const unread = refused(await world.app.put('/v1/agents/a', undefined, body), 400, 'request_rejected');
    assert.equal(unread.message, 'Invalid JSON');
});

test('api 1.1 step 11: the body is read before the resource is looked for', async () => {
    const broken = { text: '[' };
    refused(await world.app.post('/v1/sessions/none/commands', undefined, broken), 400, 'request_rejected');
    const sound = { type: 'cancel', requestId: 'r', idempotencyKey: 'k' };
    refused(await world.app.post('/v1/sessions/none/commands', sound), 404, 'request_rejected');
});

const UNKNOWN = ['/v1/agents/', '/v1//agents', '//v1/agents', '/v2/agents', '/', '/v1', '/v1/sessions//items'];
const GONE = [
    '/v1/admin/status',
    '/v1/tokens',
    '/v1/access/policy',
    '/v1/vaults',
    '/v1/endpoints',
    '/v1/actions/x',
    '/v1/executors',
    '/v1/oauth/callback',
];

test('api 1.1: an unknown route is authenticated with either kind of key, then 404 "Route not found"', async () => {
    for (const path of [...UNKNOWN, ...GONE]) {
        for (const client of [world.app, world.management]) {
            const { message } = refused(await client.get(path), 404, 'request_rejected');
            assert.equal(message, 'Route not found', path);
        }
        const keyless = { headers: { authorization: null } };
        refused(await world.app.get(path, keyless), 401, 'credential_required');
        const wrong = { headers: { authorization: `Bearer ${WRONG_KEY}` } };
        refused(await world.app.get(path, wrong), 401, 'credential_invalid');
    }
    refused(await world.app.send('PATCH', '/v1/agents'), 404, 'request_rejected');
    refused(await world.app.post('/v1/agents'), 404, 'request_rejected');
});

test('api 1.1: a parameter is one segment, and an id with a slash travels percent-encoded', async () => {
    const id = 'team-a/proj-42';
    const body = { requestId: 'r', manifest: plainManifest(id), implementationVersion: '1' };
    assert.equal(done(await world.app.put('/v1/agents/team-a%2Fproj-42', body)).agentId, id);
    refused(await world.app.put('/v1/agents/team-a/proj-42', body), 404, 'request_rejected');
});

test('api, Appendix B: a request target that is no path is 400 invalid_request', async () => {
    const answer = await raw('GET http://127.0.0.1/health');
    assert.ok([200, 400, 421].includes(answer.status), answer.text);
    const star = await raw('GET *');
    assert.equal(star.status, 400, star.text);
});
