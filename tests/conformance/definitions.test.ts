// Definition files and skills (api 2.1; sandbox-and-definitions d1; engine b.8).

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import type { Answer, Options } from './support/client.ts';
import { fresh, newAgent, newSession, openWorld, plainManifest, turn } from './support/world.ts';

const world = await openWorld();

const LIMIT = 10 * 1024 * 1024;

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
    return new Uint8Array(Buffer.from(text));
}

function nameOf(bytes: Uint8Array): string {
    return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function put(bytes: Uint8Array<ArrayBuffer>, name: string = nameOf(bytes), options: Options = {}): Promise<Answer> {
    return world.app.send('PUT', `/v1/files/${name}`, { bytes, ...options });
}

async function has(name: string): Promise<number> {
    return (await world.app.head(`/v1/files/${name}`)).status;
}

/** Stores a text and answers its name. */
async function stored(text: string): Promise<string> {
    const bytes = bytesOf(text);
    assert.ok([200, 201].includes((await put(bytes)).status));
    return nameOf(bytes);
}

test('api 2.1: a file is 201 when it is new and 200 when it is there', async () => {
    const bytes = bytesOf(fresh('file'));
    const name = nameOf(bytes);
    assert.equal(await has(name), 404);
    const first = await put(bytes);
    assert.equal(first.status, 201);
    assert.deepEqual(first.body, { sha256: name, size: bytes.length });
    assert.deepEqual(done(await put(bytes)), first.body);
    assert.equal(await has(name), 200);
});

test('api 2.1, 1.1: a file has any media type, and a JSON type too; compressed ones are 415', async () => {
    const bytes = bytesOf(fresh('file'));
    for (const type of ['image/png', 'application/json', 'text/markdown; charset=utf-8']) {
        assert.ok((await put(bytes, nameOf(bytes), { headers: { 'content-type': type } })).status < 300, type);
    }
    const encoded = { headers: { 'content-encoding': 'gzip' } };
    refused(await put(bytes, nameOf(bytes), encoded), 415, 'unsupported_media_type');
});

test('api 2.1: a Content-Type that is none is 400', async () => {
    const bytes = bytesOf('x');
    for (const type of ['text', 'text/', '/x', 'a b/c', 'text/plain, text/html']) {
        refused(await put(bytes, nameOf(bytes), { headers: { 'content-type': type } }), 400, 'invalid_request');
    }
});

test('api 1.8: bytes of another hash are 400 with both hashes, and are not stored', async () => {
    const [bytes, other] = [bytesOf(fresh('file')), bytesOf(fresh('file'))];
    const { details } = refused(await put(bytes, nameOf(other)), 400, 'invalid_request');
    assert.deepEqual(details, { expected: nameOf(other), actual: nameOf(bytes) });
    assert.deepEqual([await has(nameOf(other)), await has(nameOf(bytes))], [404, 404]);
});

test('api 1.13: a file of 10 MiB is stored, and a larger one is 413 with the limit', async () => {
    assert.ok((await put(new Uint8Array(LIMIT))).status < 300);
    const larger = new Uint8Array(LIMIT + 1);
    assert.deepEqual(refused(await put(larger), 413, 'limit_exceeded').details, { limitBytes: LIMIT });
    assert.equal(await has(nameOf(larger)), 404);
});

test('api 1.12: the name of a file is sha256: and 64 lower-case hexadecimal digits', async () => {
    const bytes = bytesOf('x');
    const hex = nameOf(bytes).slice('sha256:'.length);
    for (const name of [hex, `sha256:${hex.toUpperCase()}`, `sha256:${hex}0`, 'sha256:', `md5:${hex}`]) {
        refused(await put(bytes, name), 400, 'request_rejected');
        assert.equal(await has(name), 400);
    }
});

test('api 2.1: only the application itself stores files, and nobody reads them', async () => {
    const bytes = bytesOf('x');
    const name = await stored('x');
    const person = world.person('ann', 'agents:write agents:read');
    const { details } = refused(await person.send('PUT', `/v1/files/${name}`, { bytes }), 403, 'scope_required');
    assert.deepEqual(details.scopes, []);
    assert.equal((await person.head(`/v1/files/${name}`)).status, 403);
    const { message } = refused(await world.app.get(`/v1/files/${name}`), 404, 'request_rejected');
    assert.equal(message, 'Route not found');
    assert.equal((await world.app.head('/v1/agents')).status, 404);
});

/** A manifest of an agent with these skills, whose files are stored. */
async function withSkills(skills: Record<string, Record<string, string>>, tools?: any[]): Promise<any> {
    const manifest = plainManifest(fresh('agent'));
    const capability = manifest.capabilities[0];
    if (tools !== undefined) capability.tools = tools;
    capability.skills = {};
    for (const [name, files] of Object.entries(skills)) {
        const hashes: Record<string, string> = {};
        for (const [path, text] of Object.entries(files)) hashes[path] = await stored(text);
        capability.skills[name] = { name, description: `About ${name}`, files: hashes };
    }
    return manifest;
}

const SKILL = '---\nname: pdf\ndescription: d\n---\n\nRead forms.md.\n';

/** What each call of a turn gave. */
async function results(session: string, calls: object[]): Promise<any[]> {
    const events = await turn(world.app, session, [...calls.map((call) => ({ tools: [call] })), { text: 'end' }]);
    assert.equal(events.at(-1).type, 'turn.completed');
    return events.filter((event) => event.type === 'tool.completed').map((event) => event.payload);
}

test('sandbox-and-definitions d1: load_skill gives what follows the frontmatter; files are given whole', async () => {
    const manifest = await withSkills({ pdf: { 'SKILL.md': SKILL, 'forms.md': 'Forms: ü.', 'a/b.txt': 'deep' } });
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const given = await results(session, [
        { name: 'load_skill', input: { name: 'pdf' } },
        { name: 'read_skill_resource', input: { name: 'pdf', path: 'forms.md' } },
        { name: 'read_skill_resource', input: { name: 'pdf', path: 'a/b.txt' } },
    ]);
    assert.deepEqual(
        given.map((payload) => payload.output),
        [{ name: 'pdf', instructions: 'Read forms.md.\n', files: ['a/b.txt', 'forms.md'] }, 'Forms: ü.', 'deep'],
    );
    assert.deepEqual(
        given.map((payload) => payload.capabilityId),
        ['main', 'main', 'main'],
    );
});

test('sandbox-and-definitions d1: what a skill tool cannot give is an outcome with a code', async () => {
    const manifest = await withSkills({ pdf: { 'SKILL.md': SKILL, 'forms.md': 'x' } });
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const given = await results(session, [
        { name: 'load_skill', input: { name: 'other' } },
        { name: 'read_skill_resource', input: { name: 'pdf', path: '../forms.md' } },
        { name: 'load_skill', input: { name: 7 } },
    ]);
    assert.deepEqual(
        given.map((payload) => payload.error.code),
        ['skill.not_found', 'skill.file_not_found', 'tool.invalid-arguments'],
    );
});

test('engine b.8: a file of more than 32 KiB is shown by its two ends', async () => {
    const manifest = await withSkills({ pdf: { 'SKILL.md': SKILL, 'large.txt': 'y'.repeat(40_000) } });
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const call = { name: 'read_skill_resource', input: { name: 'pdf', path: 'large.txt' } };
    const [{ output }] = await results(session, [call]);
    assert.deepEqual([output.truncated, output.size], [true, 40_002]);
    assert.ok(output.preview.length < 8_192);
});

test('sandbox-and-definitions d1: declared skill tools are served, and missing ones are pinned', async () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const declared = await withSkills({ pdf: { 'SKILL.md': SKILL } }, [
        { name: 'load_skill', description: 'Loads.', inputSchema: schema },
    ]);
    const silent = await withSkills({ pdf: { 'SKILL.md': SKILL, 'forms.md': 'x' } });
    const pinned = async (manifest: any) => {
        const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest), sandbox: false });
        const view = done(await world.app.get(`/v1/sessions/${session}`));
        const { tools } = done(await world.app.get(`/v1/sessions/${session}/manifest`)).manifest.capabilities[0];
        const [given] = await results(session, [{ name: 'load_skill', input: { name: 'pdf' } }]);
        assert.equal(given.output.instructions, 'Read forms.md.\n');
        return [tools.map((tool: any) => tool.name), view.definitionHash !== undefined];
    };
    assert.deepEqual(await pinned(declared), [['load_skill'], false]);
    assert.deepEqual(await pinned(silent), [['load_skill', 'read_skill_resource'], true]);
});

test('api 2.1: a session goes on with the files that it pinned after the agent was saved with others', async () => {
    const manifest = await withSkills({ pdf: { 'SKILL.md': 'The first.' } });
    const session = await newSession(world.app, { agentId: await newAgent(world.app, manifest) });
    const second = await withSkills({ pdf: { 'SKILL.md': 'The second.' } });
    await newAgent(world.app, { ...second, id: manifest.id });
    const [given] = await results(session, [{ name: 'load_skill', input: { name: 'pdf' } }]);
    assert.equal(given.output.instructions, 'The first.');
});
