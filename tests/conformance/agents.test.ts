// Agents and their manifests (api 2.1, Appendix A; sandbox-and-definitions d1).

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { done, problemPaths, problemsOf, refused } from './support/client.ts';
import { fresh, newAgent, newSession, plainManifest, openWorld } from './support/world.ts';

const world = await openWorld('none');

const SCHEMA = { type: 'object', properties: { q: { type: 'string' } } };
const FILE = `sha256:${'a'.repeat(64)}`;

function save(manifest: any, id: string = manifest.id) {
    return world.app.put(`/v1/agents/${encodeURIComponent(id)}`, {
        requestId: 'r',
        manifest,
        implementationVersion: '1',
    });
}

/** A manifest whose one capability holds these members too. */
function withMembers(members: object, top: object = {}): any {
    const manifest = plainManifest(fresh('agent'));
    Object.assign(manifest, top);
    Object.assign(manifest.capabilities[0], members);
    return manifest;
}

test('api 2.1: a saved agent is answered with its hash, and listed as it was sent', async () => {
    const manifest = withMembers({ description: 'd' }, { name: 'N', metadata: { b: 1.5, a: [null] } });
    const saved = done(await save(manifest));
    const { agents } = done(await world.app.get('/v1/agents'));
    const listed = agents.find((agent: any) => agent.agentId === manifest.id);
    assert.deepEqual(saved, { agentId: manifest.id, manifestHash: listed.manifestHash, implementationVersion: '1' });
    assert.deepEqual(listed, { ...saved, manifest });
});

test('overview, Decisions already made: manifestHash is the SHA-256 of canonical JSON', async () => {
    const manifest = plainManifest(fresh('agent'));
    const sorted = {
        capabilities: [{ id: 'main', instructions: ['Help.'], type: 'agent' }],
        id: manifest.id,
        manifestSchemaVersion: 5,
    };
    const hash = createHash('sha256').update(JSON.stringify(sorted)).digest('hex');
    assert.equal(done(await save(manifest)).manifestHash, hash);
});

test('overview, Decisions already made: the hash sorts by UTF-16 unit and prints numbers as JavaScript', async () => {
    const id = fresh('agent');
    const metadata = '{"\\ud83d\\ude00":1e2,"\\uffff":1.0,"z":1E-7,"\\u0061":-0}';
    const body =
        `{"requestId":"r","implementationVersion":"1","manifest":{"metadata":${metadata},"id":"${id}",` +
        '"manifestSchemaVersion":5,"capabilities":[]}}';
    const canonical =
        `{"capabilities":[],"id":"${id}","manifestSchemaVersion":5,` +
        '"metadata":{"a":0,"z":1e-7,"\u{1f600}":100,"\uffff":1}}';
    const { manifestHash } = done(await world.app.put(`/v1/agents/${id}`, undefined, { text: body }));
    assert.equal(manifestHash, createHash('sha256').update(canonical).digest('hex'));
});

test('api 2.1: saving again replaces the definition; open sessions keep theirs', async () => {
    const manifest = plainManifest(fresh('agent'));
    const agentId = await newAgent(world.app, manifest);
    const session = await newSession(world.app, { agentId });
    const changed = { ...manifest, name: 'Other' };
    const saved = done(await save(changed));
    const pinned = done(await world.app.get(`/v1/sessions/${session}/manifest`));
    assert.deepEqual(pinned.manifest, manifest);
    assert.notEqual(pinned.manifestHash, saved.manifestHash);
    const later = await newSession(world.app, { agentId });
    assert.equal(done(await world.app.get(`/v1/sessions/${later}`)).manifestHash, saved.manifestHash);
});

test('api 2.1: an id that differs from the path is 400', async () => {
    refused(await save(plainManifest('one'), 'two'), 400, 'request_rejected');
});

test('api 2.1: the body is strict, and its version is not empty', async () => {
    const manifest = plainManifest('a');
    const send = (body: object) => world.app.put('/v1/agents/a', body);
    assert.deepEqual(problemPaths(await send({ requestId: 'r', manifest, implementationVersion: '' })), [
        'implementationVersion',
    ]);
    const missing = ['implementationVersion', 'manifest', 'requestId'];
    assert.deepEqual(problemPaths(await send({})), missing);
    refused(await send({ requestId: 'r', manifest, implementationVersion: '1', extra: 1 }), 400, 'request_rejected');
});

test('sandbox-and-definitions d1: a manifest of version 5 with every member is saved', async () => {
    const child = withMembers({}, { description: 'A child.' });
    const task = {
        type: 'object',
        properties: { task: { type: 'string', minLength: 1 } },
        required: ['task'],
        additionalProperties: false,
    };
    const manifest = withMembers(
        {
            name: 'n',
            description: 'd',
            metadata: {},
            instructions: ['a', 'b'],
            tools: [
                {
                    name: 'look_up',
                    description: 'x',
                    inputSchema: SCHEMA,
                    outputSchema: SCHEMA,
                    approval: 'always',
                    http: { url: 'https://api.example.com/x?y=1', method: 'PUT', credential: 'c', timeoutMs: 300000 },
                },
                { name: child.id, description: 'A child.', inputSchema: task, agent: child },
            ],
            mcpServers: {
                docs: {
                    name: 'docs',
                    type: 'streamable-http',
                    url: 'https://mcp.example.com',
                    headers: { a: 'b' },
                    approval: 'never',
                },
            },
        },
        { name: 'n', description: 'd', metadata: {}, outputSchema: { type: 'object' }, runtime: {} },
    );
    manifest.capabilities.push({ id: 'plugin', type: 'agent-plugin' });
    done(await save(manifest));
});

test('sandbox-and-definitions d1: version 6 adds tools and deferred to MCP servers, 5 refuses them', async () => {
    const server = {
        name: 's',
        type: 'sse',
        url: 'https://mcp.example.com',
        deferred: true,
        tools: { '*': { enabled: false }, 'a b': { enabled: true, approval: 'always', deferred: false } },
    };
    const manifest = withMembers({ mcpServers: { s: server } }, { manifestSchemaVersion: 6 });
    done(await save(manifest));
    const older = problemPaths(await save({ ...manifest, manifestSchemaVersion: 5 }));
    const at = (member: string) => `manifest.capabilities.0.mcpServers.s.${member}`;
    const names = older.filter((path) => path === at('deferred') || path === at('tools'));
    assert.ok(names.length === 2 || older.includes('manifest.capabilities.0.mcpServers.s'), older.join());
});

/** Rows of d1: what is refused, the manifest, and the place of the problem. */
const REFUSED: [string, () => any, string][] = [
    ['version 3', () => withMembers({}, { manifestSchemaVersion: 3 }), 'manifestSchemaVersion'],
    ['version 4', () => withMembers({}, { manifestSchemaVersion: 4 }), 'manifestSchemaVersion'],
    ['version 7', () => withMembers({}, { manifestSchemaVersion: 7 }), 'manifestSchemaVersion'],
    ['an unknown member', () => withMembers({}, { colour: 1 }), ''],
    ['functions', () => withMembers({}, { functions: [] }), 'functions'],
    ['model', () => withMembers({}, { model: 'x' }), 'model'],
    ['schemaVersion', () => withMembers({}, { schemaVersion: 5 }), 'schemaVersion'],
    ['a runtime that is not empty', () => withMembers({}, { runtime: { a: 1 } }), 'runtime'],
    ['an empty name', () => withMembers({}, { name: '' }), 'name'],
    ['kind: workflow', () => withMembers({}, { kind: 'workflow' }), ''],
    ["a capability's unknown member", () => withMembers({ colour: 1 }), 'capabilities.0'],
    ['hooks', () => withMembers({ hooks: {} }), 'capabilities.0.hooks'],
    ["a capability's model", () => withMembers({ model: 'x' }), 'capabilities.0.model'],
    ['a wrong type of capability', () => withMembers({ type: 'other' }), 'capabilities.0.type'],
    ['a declared sandbox', () => withMembers({ sandbox: {} }), 'capabilities.0.sandbox'],
    ['an empty map of skills', () => withMembers({ skills: {} }), 'capabilities.0.skills'],
    ['an empty map of MCP servers', () => withMembers({ mcpServers: {} }), 'capabilities.0.mcpServers'],
    [
        'an MCP server over stdio',
        () => withMembers({ mcpServers: { s: { name: 's', type: 'stdio', command: 'x' } } }),
        'capabilities.0.mcpServers.s',
    ],
    [
        'an MCP server under another key',
        () => withMembers({ mcpServers: { a: { name: 'b', type: 'sse', url: 'https://x.example' } } }),
        'capabilities.0.mcpServers.a',
    ],
    [
        "a tool's name of 65 characters",
        () =>
            withMembers({
                tools: [{ name: 'x'.repeat(65), inputSchema: SCHEMA, http: { url: 'https://x.example' } }],
            }),
        'capabilities.0.tools.0.name',
    ],
    [
        'a tool with fn',
        () => withMembers({ tools: [{ name: 'a', inputSchema: SCHEMA, fn: 'x' }] }),
        'capabilities.0.tools.0',
    ],
    [
        'a tool with command',
        () => withMembers({ tools: [{ name: 'a', inputSchema: SCHEMA, command: 'x' }] }),
        'capabilities.0.tools.0',
    ],
    [
        'a tool that needs code',
        () => withMembers({ tools: [{ name: 'a', inputSchema: SCHEMA }] }),
        'capabilities.0.tools.0',
    ],
    [
        'a tool without an input schema',
        () => withMembers({ tools: [{ name: 'a', http: { url: 'https://x.example' } }] }),
        'capabilities.0.tools.0.inputSchema',
    ],
    [
        'an HTTP target with user info',
        () => withMembers({ tools: [{ name: 'a', inputSchema: SCHEMA, http: { url: 'https://u:p@x.example' } }] }),
        'capabilities.0.tools.0.http.url',
    ],
    [
        'an HTTP target with a fragment',
        () => withMembers({ tools: [{ name: 'a', inputSchema: SCHEMA, http: { url: 'https://x.example/#a' } }] }),
        'capabilities.0.tools.0.http.url',
    ],
    [
        'GET as an HTTP method',
        () =>
            withMembers({
                tools: [{ name: 'a', inputSchema: SCHEMA, http: { url: 'https://x.example', method: 'GET' } }],
            }),
        'capabilities.0.tools.0.http.method',
    ],
    [
        'a time-out above 300,000 ms',
        () =>
            withMembers({
                tools: [{ name: 'a', inputSchema: SCHEMA, http: { url: 'https://x.example', timeoutMs: 300001 } }],
            }),
        'capabilities.0.tools.0.http.timeoutMs',
    ],
    [
        'approval without http',
        () => {
            const manifest = withMembers({});
            const child = withMembers({}, { description: 'c' });
            const input = {
                type: 'object',
                properties: { task: { type: 'string', minLength: 1 } },
                required: ['task'],
                additionalProperties: false,
            };
            manifest.capabilities[0].tools = [
                { name: child.id, description: 'c', inputSchema: input, agent: child, approval: 'always' },
            ];
            return manifest;
        },
        'capabilities.0.tools.0',
    ],
    [
        'a skill without SKILL.md',
        () => withMembers({ skills: { s: { name: 's', description: 'd', files: { 'a.md': FILE } } } }),
        'capabilities.0.skills.s.files',
    ],
    [
        'a skill under another key',
        () => withMembers({ skills: { a: { name: 'b', description: 'd', files: { 'SKILL.md': FILE } } } }),
        'capabilities.0.skills.a',
    ],
];

for (const [what, make, path] of REFUSED) {
    test(`sandbox-and-definitions d1: ${what} is refused, and the problem names the place`, async () => {
        const paths = problemPaths(await save(make()));
        const place = path === '' ? 'manifest' : `manifest.${path}`;
        assert.ok(
            paths.some((found) => found === place || found.startsWith(`${place}.`)),
            `${place} is not in ${paths}`,
        );
    });
}

test('sandbox-and-definitions d1: names of tools and ids of capabilities are unique in the agent', async () => {
    const tool = { name: 'same', inputSchema: SCHEMA, http: { url: 'https://x.example' } };
    const manifest = withMembers({ tools: [tool] });
    manifest.capabilities.push({ id: 'main', type: 'agent', tools: [tool] });
    const paths = problemPaths(await save(manifest));
    assert.ok(
        paths.some((path) => path.startsWith('manifest.capabilities.1.id')),
        paths.join(),
    );
    assert.ok(
        paths.some((path) => path.startsWith('manifest.capabilities.1.tools.0')),
        paths.join(),
    );
});

test('decisions, Text and JSON: all problems of a manifest are told at once', async () => {
    const manifest = withMembers(
        { type: 'other', hooks: {}, tools: [{ name: 'a b', inputSchema: SCHEMA, http: { url: 'ftp://x' } }] },
        { functions: 1, colour: 1, name: '' },
    );
    const paths = problemPaths(await save(manifest)).join(' ');
    for (const place of [
        'name',
        'functions',
        'capabilities.0.type',
        'capabilities.0.hooks',
        'capabilities.0.tools.0.name',
        'capabilities.0.tools.0.http.url',
    ]) {
        assert.ok(paths.includes(`manifest.${place}`), `${place} is not in ${paths}`);
    }
});

test('decisions, Text and JSON: problems of the body and of its manifest are told at once', async () => {
    const manifest = withMembers({ type: 'other' });
    const paths = problemPaths(
        await world.app.put(`/v1/agents/${manifest.id}`, { manifest, implementationVersion: '' }),
    );
    assert.deepEqual(paths, ['implementationVersion', 'manifest.capabilities.0.type', 'requestId']);
});

test('decisions, Text and JSON: an unknown member of a manifest does not hide its other problems', async () => {
    const manifest = withMembers({ type: 'other', colour: 1 }, { colour: 1 });
    const paths = problemPaths(await save(manifest));
    assert.deepEqual(paths, ['manifest', 'manifest.capabilities.0', 'manifest.capabilities.0.type']);
});

test('sandbox-and-definitions d1: versions 3 and 4 are told to be rebuilt, others are unsupported', async () => {
    const told = async (version: unknown) =>
        problemsOf(await save(withMembers({}, { manifestSchemaVersion: version })))
            .map((problem) => problem.message)
            .join();
    assert.match(await told(3), /rebuild/i);
    assert.match(await told(4), /rebuild/i);
    assert.doesNotMatch(await told(9), /rebuild/i);
});

test('api 2.1: definition files that are not stored are 400 definition_files_missing', async () => {
    const manifest = withMembers({ skills: { s: { name: 's', description: 'd', files: { 'SKILL.md': FILE } } } });
    refused(await save(manifest), 400, 'definition_files_missing');
});

test('api 1.8: definition_files_missing names the missing files in details.missing', async () => {
    const manifest = withMembers({ skills: { s: { name: 's', description: 'd', files: { 'SKILL.md': FILE } } } });
    const { details } = refused(await save(manifest), 400, 'definition_files_missing');
    assert.deepEqual(details?.missing, [FILE]);
});
