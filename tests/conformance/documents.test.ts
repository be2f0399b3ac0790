// The host's own documents (api 7.1 to 7.3, 7.6) and the first steps of a client.

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { DOCUMENTS, OPERATIONS } from './support/openapi.ts';
import { command, message, newAgent, newSession, only, turn, openWorld } from './support/world.ts';
import { validate } from './support/validator.ts';

const world = await openWorld();

const REQUIRED = ['studio-principal', 'artifacts', 'management-api', 'resource-server'];

test('api 7.1: /health says who it is and which protocols it speaks, to anybody', async () => {
    const health = done(await world.nobody.get('/health'));
    assert.equal(health.status, 'ok');
    assert.equal(health.service, 'nylorun-runtime');
    assert.match(health.hostId, /^host_[0-9a-z]{26}$/);
    assert.deepEqual([health.protocol.min, health.protocol.max], [4, 10]);
    const types = { version: { type: 'string' }, coreVersion: { type: 'string' }, pid: { type: 'integer' } };
    assert.deepEqual(validate({ required: Object.keys(types), properties: types }, health), []);
});

test('api 1.2: the four features without which no client connects are advertised', async () => {
    const { features } = done(await world.nobody.get('/health')).protocol;
    assert.deepEqual(
        REQUIRED.filter((feature) => !features.includes(feature)),
        [],
    );
});

test('api 1.2: features stand in the order of the specification', async () => {
    const order = ['runtime-tenants', 'admin-status', ...REQUIRED, 'tenant-fixture-model', 'subject-headers'];
    order.push('trusted-issuers', 'session-reads', 'calls-export');
    const { features } = done(await world.nobody.get('/health')).protocol;
    assert.deepEqual(
        features.filter((feature: string) => order.includes(feature)),
        order,
    );
});

test('api 7.2: /ready answers its checks', async () => {
    const ready = done(await world.nobody.get('/ready'));
    const checks = { listener: true, tenant: true, database: true };
    assert.deepEqual(ready, { status: 'ready', service: 'nylorun-runtime', checks });
});

test('api 1.1 step 5: /health and /ready answer every method', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
        assert.equal((await world.nobody.send(method, '/health')).status, 200, method);
        assert.equal((await world.nobody.send(method, '/ready')).status, 200, method);
    }
});

test('api 7.3: the OpenAPI documents are served as the repository holds them, uncached', async () => {
    const [runtime, management] = DOCUMENTS;
    const served = {
        '/openapi.json': runtime,
        '/openapi/runtime.json': runtime,
        '/openapi/management.json': management,
    };
    for (const [path, document] of Object.entries(served)) {
        const answer = await world.nobody.get(path);
        assert.deepEqual(done(answer), document, path);
        assert.equal(answer.headers.get('cache-control'), 'no-cache', path);
    }
});

test('api 7.3: the documents are OpenAPI 3.2 with three security schemes, and operations carry who may call', () => {
    for (const document of DOCUMENTS) {
        assert.equal(document.openapi, '3.2.0');
        assert.deepEqual(Object.keys(document.components.securitySchemes), [
            'applicationKey',
            'managementKey',
            'issuerToken',
        ]);
        for (const item of Object.values<any>(document.paths)) {
            for (const operation of Object.values<any>(item)) {
                assert.ok(Array.isArray(operation['x-nylorun-credentials']), operation.operationId);
                assert.ok(Array.isArray(operation['x-nylorun-scopes']), operation.operationId);
            }
        }
        assert.ok('/v1/me' in document.paths);
    }
    assert.ok(Array.isArray(DOCUMENTS[0]['x-tagGroups']));
    for (const { servers } of DOCUMENTS) assert.equal(servers[0].variables.origin.default, 'http://localhost:8787');
});

test('api 1.5, 1.1: operations that read a subject or an id from the path name the 400 of wrong ones', () => {
    const reads = ({ parameters = [] }: any) =>
        parameters.some((sent: any) => sent.name === 'Nylorun-Subject' || sent.in === 'path');
    const operations = [...OPERATIONS.values()].map((operation) => operation.description);
    const silent = operations.filter((operation) => reads(operation) && !('400' in operation.responses));
    assert.deepEqual(
        silent.map((operation) => operation.operationId),
        [],
    );
});

test('api 1.8: every operation names the 503 of storage that does not answer', () => {
    const operations = [...OPERATIONS.values()].map((operation) => operation.description);
    const silent = operations.filter((operation) => !('503' in operation.responses));
    assert.deepEqual(
        silent.map((operation) => operation.operationId),
        [],
    );
});

test('api 1.12: the document says that a sandbox id has at most 200 characters', () => {
    const { requestBody } = OPERATIONS.get('PUT /v1/sessions/{id}')!.description;
    const { anyOf } = requestBody.content['application/json'].schema.properties.sandbox;
    const resource = anyOf.find((choice: any) => choice.properties?.id !== undefined);
    assert.equal(resource.properties.id.maxLength, 200);
});

test('api 7.6: without a trusted issuer there is no protected-resource document', async () => {
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/v1/x']) {
        refused(await world.nobody.get(path), 404, 'not_found');
        refused(await world.nobody.get(path, { headers: { origin: 'https://app.example' } }), 404, 'not_found');
    }
});

test('api 1.2: a turn works the same under every protocol from 4 to 10', async () => {
    for (const protocol of ['4', '5', '6', '7', '8', '9', '10']) {
        const client = world.clientWith(world.server.applicationKey, protocol);
        const session = await newSession(client);
        const events = await turn(client, session, `protocol ${protocol}`);
        assert.equal(only(events, 'turn.completed').payload.output, `protocol ${protocol}`);
    }
});

test('api 1.3: JSON answers carry their type and their length', async () => {
    const agent = await newAgent(world.app);
    const session = await newSession(world.app, { agentId: agent });
    await command(world.app, session, message('x'));
    for (const path of ['/v1/agents', '/v1/sessions', `/v1/sessions/${session}`, '/v1/gone']) {
        const { headers, text } = await world.app.get(path);
        assert.equal(headers.get('content-type'), 'application/json', path);
        assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)), path);
    }
});

test('api 1.1: no answer carries CORS headers', async () => {
    for (const path of ['/health', '/v1/me', '/v1/gone']) {
        const { headers } = await world.app.get(path);
        const cors = [...headers.keys()].filter((name) => name.startsWith('access-control'));
        assert.deepEqual(cors, [], path);
    }
});
