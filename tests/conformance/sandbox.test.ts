// The sandbox that a session gets (api 2.2; sandbox-and-definitions a7, a8), and the tenant's default for it.

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import { fresh, newAgent, newSession, only, plainManifest, turn, openWorld } from './support/world.ts';

const world = await openWorld();

async function open(members: object, client = world.app) {
    const agentId = await newAgent(world.app);
    return client.put(`/v1/sessions/${fresh('s')}`, { requestId: 'r', agentId, ownerUserId: 'ann', ...members });
}

test('sandbox-and-definitions a7: without a tenant default a session has no sandbox, and false says so', async () => {
    for (const members of [{}, { sandbox: false }]) {
        const view = done(await open(members));
        assert.equal(view.sandbox, null);
        assert.equal(view.sandboxSource, undefined);
        assert.equal(view.definitionHash, undefined);
        const answer = await world.app.post(`/v1/sessions/${view.id}/sandbox/read`, { path: 'a' });
        refused(answer, 404, 'request_rejected');
    }
});

test('sandbox-and-definitions a7: an inline sandbox gets the defaults of the tenant', async () => {
    const view = done(await open({ sandbox: {} }));
    assert.deepEqual(view.sandbox, {
        network: { preset: 'none' },
        resources: { cpus: 2, memory: '1024MiB' },
        idle: '15m',
    });
    assert.deepEqual([view.sandboxSource, view.sandboxOwnerId], ['inline', null]);
});

test('sandbox-and-definitions a7: sizes are binary and rounded up to whole MiB, at least 128 MiB', async () => {
    for (const [asked, given] of [
        ['2GiB', '2048MiB'],
        ['512MiB', '512MiB'],
        ['1KiB', '128MiB'],
        ['134217729B', '129MiB'],
    ]) {
        const view = done(await open({ sandbox: { resources: { cpus: 1, memory: asked } } }));
        assert.deepEqual(view.sandbox.resources, { cpus: 1, memory: given }, asked);
    }
});

test('sandbox-and-definitions a7, I14: a sandbox adds tools to the pinned copy only, so its hash differs', async () => {
    const view = done(await open({ sandbox: {} }));
    assert.match(view.definitionHash, /^[0-9a-f]{64}$/);
    assert.notEqual(view.definitionHash, view.manifestHash);
    const { manifest } = done(await world.app.get(`/v1/sessions/${view.id}/manifest`));
    assert.deepEqual(manifest.capabilities.map((one: any) => one.id).slice(0, 2), ['main', 'nylorun.sandbox']);
    const tools = manifest.capabilities[1].tools.map((tool: any) => tool.name);
    assert.deepEqual(tools.sort(), ['bash', 'edit', 'glob', 'grep', 'read', 'write']);
    const { agents } = done(await world.app.get('/v1/agents'));
    const saved = agents.find((agent: any) => agent.agentId === view.agentId);
    assert.deepEqual(saved.manifest.capabilities.length, 1);
    assert.equal(saved.manifestHash, view.definitionHash);
});

const NO_ARTIFACTS = { todo: 'save_artifact is not there yet: artifacts are not built' };
test('sandbox-and-definitions a7: a sandbox comes with save_artifact', NO_ARTIFACTS, async () => {
    const view = done(await open({ sandbox: {} }));
    const { manifest } = done(await world.app.get(`/v1/sessions/${view.id}/manifest`));
    assert.deepEqual(
        manifest.capabilities.map((one: any) => one.id),
        ['main', 'nylorun.sandbox', 'nylorun.artifacts'],
    );
});

test('sandbox-and-definitions a7: every problem of a sandbox is told together', async () => {
    const sandbox = {
        image: 'python:3',
        network: { allow: ['a.example', '*.b.example'] },
        resources: { cpus: 5, memory: '9GiB' },
    };
    const paths = problemPaths(await open({ sandbox })).join(' ');
    for (const place of ['sandbox.image', 'sandbox.network', 'sandbox.resources.cpus', 'sandbox.resources.memory']) {
        assert.ok(paths.includes(place), `${place} is not in ${paths}`);
    }
});

test('sandbox-and-definitions a1: what is no host pattern, size or number of processors is 400', async () => {
    for (const allow of [
        'localhost',
        '10.0.0.1',
        'https://a.example',
        'a.example:80',
        '-a.example',
        'a..b',
        '*.x',
        'a.*.b',
    ]) {
        refused(await open({ sandbox: { network: { allow: [allow] } } }), 400, 'request_rejected');
    }
    for (const memory of ['0MiB', '1.5GiB', '1GB', '512', 'GiB', '-1MiB']) {
        refused(await open({ sandbox: { resources: { memory } } }), 400, 'request_rejected');
    }
    for (const cpus of [0, 65, 1.5, '2']) {
        refused(await open({ sandbox: { resources: { cpus } } }), 400, 'request_rejected');
    }
    for (const sandbox of [true, 'virtual', null, [], { disk: 1 }, { network: { deny: [] } }]) {
        refused(await open({ sandbox }), 400, 'request_rejected');
    }
});

test('sandbox-and-definitions a7: a person may not describe a sandbox inline', async () => {
    refused(await open({ sandbox: {} }, world.person('ann')), 403, 'request_rejected');
});

test('decisions, Small print: a sandbox resource that does not exist is 404, and a malformed id 400', async () => {
    refused(await open({ sandbox: { id: 'team/none' } }), 404, 'request_rejected');
    for (const id of ['', '/a', 'a/', 'a//b', '.a', 'a b']) {
        refused(await open({ sandbox: { id } }), 400, 'request_rejected');
    }
});

test('sandbox-and-definitions a1: a sandbox id has at most 200 characters', async () => {
    refused(await open({ sandbox: { id: 'a'.repeat(201) } }), 400, 'request_rejected');
});

test('decisions, Compatibility: sandbox and environment at once are 400', async () => {
    refused(await open({ sandbox: {}, environment: {} }), 400, 'request_rejected');
});


test('sandbox-and-definitions a7: a tool-name clash with the sandbox is explained at the opening', async () => {
    const manifest = plainManifest(fresh('agent'));
    manifest.capabilities[0].tools = [{ name: 'bash', inputSchema: {}, http: { url: 'https://x.example' } }];
    const agentId = await newAgent(world.app, manifest);
    const body = { requestId: 'r', agentId, ownerUserId: 'ann' };
    const clash = refused(
        await world.app.put('/v1/sessions/clash', { ...body, sandbox: {} }),
        400,
        'request_rejected',
    );
    assert.match(clash.message, /bash/);
    done(await world.app.put('/v1/sessions/clash', { ...body, sandbox: false }));
});

test("a8: the tenant's default gives sessions a sandbox, false still says no", async () => {
    const config = { default: 'virtual', limits: { defaultResources: { cpus: 1, memory: '256MiB' }, idle: '5m' } };
    const seeded = done(
        await world.management.put('/v1/tenant/config/seed', { requestId: 'r', sandbox: { config } }),
    );
    assert.deepEqual(seeded, { applied: ['sandbox.config'], kept: [] });
    const view = done(await open({}, world.person('ann')));
    assert.deepEqual(view.sandbox, {
        network: { preset: 'none' },
        resources: { cpus: 1, memory: '256MiB' },
        idle: '5m',
    });
    assert.equal(view.sandboxSource, 'default');
    assert.equal(done(await open({ sandbox: false })).sandbox, null);
    const events = await turn(world.app, view.id, [
        { tools: [{ name: 'bash', input: { command: 'echo hi' } }] },
        { text: 'ok' },
    ]);
    assert.equal(only(events, 'tool.completed').payload.output.stdout, 'hi\n');
});
