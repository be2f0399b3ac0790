// The tenant's settings for sandboxes (api 3.6; sandbox-and-definitions a8) and what they do to sessions that are opened
// afterwards.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { done, problemPaths, problemsOf, refused } from './support/client.ts';
import { fresh, newAgent, only, openWorld, turn } from './support/world.ts';

const world = await openWorld();
const agentId = await newAgent(world.app);

const PATH = '/v1/tenant/sandbox';
const EVERYWHERE = { '*': { hosts: ['harness-container', 'sandbox'] } };
const DEFAULTS = {
    default: 'none',
    limits: {
        network: [],
        resources: { cpus: 4, memoryMiB: 8192 },
        defaultResources: { cpus: 2, memoryMiB: 1024 },
        idle: '15m',
        sandboxes: 100,
    },
    lifecycle: { onExpiry: 'retain', stopGrace: '10s' },
    placement: EVERYWHERE,
};

function put(settings: object) {
    return world.management.put(PATH, settings);
}

async function config() {
    return done(await world.management.get(PATH)).config;
}

function open(members: object = {}, client = world.app, id = fresh('s')) {
    return client.put(`/v1/sessions/${id}`, { requestId: 'r', agentId, ownerUserId: 'ann', ...members });
}

afterEach(async () => {
    done(await put({}));
});

test('api 3.6: without settings the view has the defaults, and the backends with their probes', async () => {
    const { reason, probes, ...view } = done(await world.management.get(PATH));
    assert.deepEqual(view, {
        preference: 'auto',
        backend: 'virtual',
        isolation: 'process',
        defaultImage: 'python:3.13-slim',
        config: DEFAULTS,
        cluster: null,
    });
    assert.notEqual(reason, '');
    const [virtual] = probes;
    assert.deepEqual([virtual.name, virtual.available, virtual.isolation], ['virtual', true, 'process']);
    assert.equal(typeof virtual.version, 'string');
});

test('api 3: the settings are for management keys', async () => {
    for (const client of [world.app, world.person('ann')]) {
        refused(await client.get(PATH), 403, 'key_role_mismatch');
        refused(await client.put(PATH, {}), 403, 'key_role_mismatch');
    }
    const subject = world.management.with({ 'nylorun-subject': 'ann' });
    refused(await subject.get(PATH), 403, 'subject_invalid');
});

test('api 3.6: a PUT replaces everything, and what it leaves out has its default again', async () => {
    const settings = {
        requestId: 'r',
        default: { network: { allow: ['api.example.com'] }, resources: { cpus: 1, memory: '512MiB' } },
        limits: {
            network: ['api.example.com', '*.Example.org'],
            resources: { cpus: 64, memory: '1TiB' },
            defaultResources: { memory: '1KiB' },
            idle: '90s',
            sandboxes: 0,
            ttl: '168h',
        },
        lifecycle: { onExpiry: 'delete', stopGrace: '30s' },
        placement: { nylorun: { hosts: ['harness-container'] }, '*': { hosts: ['sandbox'] } },
    };
    const answered = done(await put(settings));
    assert.deepEqual(answered.config, {
        default: settings.default,
        limits: {
            network: ['api.example.com', '*.example.org'],
            resources: { cpus: 64, memoryMiB: 1_048_576 },
            defaultResources: { cpus: 2, memoryMiB: 128 },
            idle: '90s',
            sandboxes: 0,
            ttl: '7d',
        },
        lifecycle: settings.lifecycle,
        placement: settings.placement,
    });
    assert.deepEqual(done(await world.management.get(PATH)), answered);
    const { limits, ...rest } = done(await put({ limits: { idle: '1m' } })).config;
    assert.deepEqual({ limits, ...rest }, { ...DEFAULTS, limits: { ...DEFAULTS.limits, idle: '1m' } });
});

test('api 3.6: every wrong member is told at once, and nothing changes', async () => {
    const wrong = {
        requestId: '',
        default: 'pod',
        limits: {
            network: ['https://x.example'],
            resources: { cpus: 0, memory: '1GB' },
            defaultResources: { cpus: 1.5 },
            idle: '0s',
            sandboxes: 100_001,
            ttl: 'long',
        },
        lifecycle: { onExpiry: 'keep', stopGrace: '31s' },
        placement: { nylorun: { hosts: [] }, '*': { hosts: ['elsewhere'] } },
    };
    assert.deepEqual(problemPaths(await put(wrong)), [
        'default',
        'lifecycle.onExpiry',
        'lifecycle.stopGrace',
        'limits.defaultResources.cpus',
        'limits.idle',
        'limits.network.0',
        'limits.resources.cpus',
        'limits.resources.memory',
        'limits.sandboxes',
        'limits.ttl',
        'placement.*.hosts.0',
        'placement.nylorun.hosts',
        'requestId',
    ]);
    assert.deepEqual(await config(), DEFAULTS);
});

test('sandbox-and-definitions a7: unknown members are refused everywhere', async () => {
    for (const [settings, path] of [
        [{ extra: 1 }, ''],
        [{ default: { disk: 1 } }, 'default'],
        [{ limits: { disk: 1 } }, 'limits'],
        [{ limits: { resources: { disk: 1 } } }, 'limits.resources'],
        [{ lifecycle: { disk: 1 } }, 'lifecycle'],
        [{ placement: { '*': { hosts: ['sandbox'], disk: 1 } } }, 'placement.*'],
    ] as const) {
        assert.deepEqual(problemPaths(await put(settings)), [path], JSON.stringify(settings));
    }
});

test('sandbox-and-definitions a8: defaults beyond the maxima are 400, and say what would be right', async () => {
    const problems = problemsOf(await put({ limits: { resources: { cpus: 1, memory: '512MiB' } } }));
    const told = problems.map(({ path, message }) => [path.join('.'), message] as const);
    assert.deepEqual(told.map(([path]) => path).sort(), [
        'limits.defaultResources.cpus',
        'limits.defaultResources.memory',
    ]);
    for (const [, message] of told) assert.match(message, /(2|1024MiB) is more than limits\.resources\.\w+, (1|512MiB):/);
    done(await put({ limits: { resources: { cpus: 1 }, defaultResources: { cpus: 1 } } }));
});

test('sandbox-and-definitions a8: a default that could not be opened is 400', async () => {
    const beyond = { default: { image: 'python', network: { allow: ['x.example.com'] }, resources: { cpus: 5 } } };
    assert.deepEqual(problemPaths(await put(beyond)), [
        'default.image',
        'default.network.allow.0',
        'default.resources.cpus',
    ]);
});

test('sandbox-and-definitions a8: a seed has the same rules, and names its own places', async () => {
    const seed = (settings: object) =>
        world.management.put('/v1/tenant/config/seed', { requestId: 'r', sandbox: { config: settings } });
    assert.deepEqual(problemPaths(await seed({ lifecycle: { stopGrace: '31s' } })), [
        'sandbox.config.lifecycle.stopGrace',
    ]);
    assert.deepEqual(problemPaths(await seed({ limits: { resources: { cpus: 1 } } })), [
        'sandbox.config.limits.defaultResources.cpus',
    ]);
    // Settings that were put are set: a seed keeps them.
    done(await put({ default: 'virtual' }));
    assert.deepEqual(done(await seed({})), { applied: [], kept: ['sandbox.config'] });
    assert.equal((await config()).default, 'virtual');
});

test('sandbox-and-definitions a8: the default virtual gives a session without a choice a workspace', async () => {
    const before = done(await open());
    assert.equal(before.sandbox, null);
    done(await put({ default: 'virtual', limits: { defaultResources: { memory: '256MiB' }, idle: '2m' } }));
    const view = done(await open({}, world.person('ann')));
    assert.deepEqual(view.sandbox, {
        network: { preset: 'none' },
        resources: { cpus: 2, memory: '256MiB' },
        idle: '2m',
    });
    assert.equal(view.sandboxSource, 'default');
    assert.equal(done(await open({ sandbox: false })).sandbox, null);
    const script = [{ tools: [{ name: 'bash', input: { command: 'echo hi' } }] }, { text: 'ok' }];
    assert.equal(only(await turn(world.app, view.id, script), 'tool.completed').payload.output.stdout, 'hi\n');
    // Sessions keep what they were opened with.
    done(await put({ default: 'none' }));
    assert.deepEqual(done(await world.app.get(`/v1/sessions/${view.id}`)).sandbox, view.sandbox);
    assert.equal(done(await world.app.get(`/v1/sessions/${before.id}`)).sandbox, null);
    assert.equal(done(await open()).sandbox, null);
});

test('sandbox-and-definitions a8: a default of its own asks for less than the limits', async () => {
    done(await put({ default: { resources: { cpus: 1 } } }));
    const { sandbox, sandboxSource } = done(await open());
    assert.deepEqual([sandbox.resources, sandboxSource], [{ cpus: 1, memory: '1024MiB' }, 'default']);
});

test('sandbox-and-definitions a7: what is beyond the limits is refused at the opening, all at once', async () => {
    const limits = {
        network: ['api.example.com', '*.example.org'],
        resources: { cpus: 2, memory: '1GiB' },
    };
    done(await put({ limits }));
    const beyond = {
        network: { allow: ['api.example.com', 'x.example.com', '*.example.org'] },
        resources: { cpus: 3, memory: '2GiB' },
    };
    assert.deepEqual(problemPaths(await open({ sandbox: beyond })), [
        'sandbox.network.allow.1',
        'sandbox.network.allow.2',
        'sandbox.resources.cpus',
        'sandbox.resources.memory',
    ]);
    const within = { network: { allow: ['B.example.org', 'api.example.com'] }, resources: { cpus: 2, memory: '1GiB' } };
    assert.deepEqual(done(await open({ sandbox: within })).sandbox, {
        network: { preset: 'none', allow: ['api.example.com', 'b.example.org'] },
        resources: { cpus: 2, memory: '1024MiB' },
        idle: '15m',
    });
});

test('environments 6: placement is checked when a session opens, and never afterwards', async () => {
    const id = fresh('placed');
    const view = done(await open({}, world.app, id));
    for (const placement of [{ '*': { hosts: ['sandbox'] } }, { nylorun: { hosts: ['sandbox'] } }]) {
        done(await put({ placement }));
        for (const sandbox of [false, {}]) {
            const { details, message } = refused(await open({ sandbox }), 409, 'placement_refused');
            assert.deepEqual(details, { harness: 'nylorun', host: 'harness-container', allowed: ['sandbox'] });
            assert.match(message, /placement/);
        }
        assert.deepEqual(done(await open({}, world.app, id)), view);
        assert.equal((await turn(world.app, id, 'hello')).at(-1).type, 'turn.completed');
        view.status = 'completed';
    }
    for (const placement of [{ nylorun: { hosts: ['harness-container'] }, '*': { hosts: ['sandbox'] } }, {}]) {
        done(await put({ placement }));
        done(await open());
    }
});

test('api 1.12: the number of sandbox resources does not limit the workspaces of sessions', async () => {
    done(await put({ default: 'virtual', limits: { sandboxes: 0 } }));
    assert.equal((await config()).limits.sandboxes, 0);
    assert.equal(done(await open()).sandboxSource, 'default');
});

test('api 3.6: the settings outlive the server', async () => {
    done(await put({ default: 'virtual', placement: { nylorun: { hosts: ['harness-container'] } } }));
    const before = await config();
    await world.server.stop();
    await world.server.start();
    assert.deepEqual(await config(), before);
});
