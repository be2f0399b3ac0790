// Sessions that share the sandbox of another one (api 2.2, 2.5; sandbox-and-definitions a4, a7, I17, I19).

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import test from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { done, problemPaths, refused } from './support/client.ts';
import { eventsUntil } from './support/sse.ts';
import { cancel, command, endsTurn, fresh, message, newAgent, newSession, only, openWorld, turn } from './support/world.ts';

const world = await openWorld();

async function open(members: object, client = world.app) {
    const agentId = await newAgent(world.app);
    return client.put(`/v1/sessions/${fresh('s')}`, { requestId: 'r', agentId, ownerUserId: 'ann', ...members });
}

/** A session with a sandbox and another one that shares it. */
async function pair(): Promise<[string, string]> {
    const owner = await newSession(world.app, { sandbox: {} });
    return [owner, await newSession(world.app, { sandbox: { session: owner } })];
}

/** A turn that does something with one command. */
function bash(line: string): unknown[] {
    return [{ tools: [{ name: 'bash', input: { command: line } }] }, { text: 'end' }];
}

function runTool(session: string, tool: string, input: object) {
    return world.app.post(`/v1/sessions/${session}/sandbox/${tool}`, input);
}

async function events(session: string): Promise<any[]> {
    return done(await world.app.get(`/v1/sessions/${session}/items`)).items;
}

/** Waits until something of this name lies in a workspace. */
async function onDisk(name: string): Promise<void> {
    const workspaces = join(world.server.home, 'tenant', 'workspaces');
    const isThere = () => readdirSync(workspaces, { recursive: true }).some((path) => basename(`${path}`) === name);
    while (!isThere()) await setImmediate();
}

/** The refusal of what another session's turn holds up. */
function busy(answer: any): void {
    const { details, message } = refused(answer, 409, 'sandbox_busy');
    assert.deepEqual(details, { retryAfterSeconds: 5 });
    assert.equal(answer.headers.get('retry-after'), '5');
    assert.match(message, /session/);
    assert.match(message, /answer what it asks/);
}

function say(session: string, content: unknown, members: object = {}) {
    return world.app.post(`/v1/sessions/${session}/commands`, message(content, members));
}

test('api 2.2: {session} shares the sandbox of another session, and the view says whose', async () => {
    const sandbox = { resources: { cpus: 1, memory: '256MiB' } };
    const owner = await newSession(world.app, { sandbox });
    const before = done(await world.app.get(`/v1/sessions/${owner}`));
    const view = done(await open({ sandbox: { session: owner } }));
    assert.deepEqual([view.sandboxSource, view.sandboxOwnerId, view.sandboxId], ['shared', owner, undefined]);
    assert.deepEqual(view.sandbox, before.sandbox);
    assert.notEqual(view.definitionHash, view.manifestHash);
    const after = done(await world.app.get(`/v1/sessions/${owner}`));
    assert.deepEqual(after, before);
    const { sessions } = done(await world.app.get('/v1/sessions?limit=200'));
    assert.equal(sessions.find((one: any) => one.id === view.id).sandboxId, null);
});

test('sandbox-and-definitions a7: a session that is missing cannot be shared with: 404', async () => {
    refused(await open({ sandbox: { session: 'none' } }), 404, 'request_rejected');
    const id = fresh('self');
    const agentId = await newAgent(world.app);
    const body = { requestId: 'r', agentId, ownerUserId: 'ann', sandbox: { session: id } };
    refused(await world.app.put(`/v1/sessions/${id}`, body), 404, 'request_rejected');
});

test("api 2.2: another owner's sandbox is 403 for the application and 404 for a person", async () => {
    const owner = await newSession(world.app, { sandbox: {}, ownerUserId: 'bob' });
    const answer = refused(await open({ sandbox: { session: owner } }), 403, 'request_rejected');
    assert.match(answer.message, /owner/);
    const missing = refused(await open({ sandbox: { session: 'none' } }, world.person('ann')), 404, 'request_rejected');
    const hidden = refused(await open({ sandbox: { session: owner } }, world.person('ann')), 404, 'request_rejected');
    assert.equal(hidden.message.replace(owner, 'none'), missing.message);
});

test('api 2.2: a person may share a sandbox of their own sessions', async () => {
    const owner = await newSession(world.app, { sandbox: {} });
    const view = done(await open({ sandbox: { session: owner } }, world.person('ann')));
    assert.equal(view.sandboxOwnerId, owner);
});

test('api 2.2: a session without a sandbox has none to share: 400', async () => {
    const owner = await newSession(world.app, { sandbox: false });
    assert.deepEqual(problemPaths(await open({ sandbox: { session: owner } })), ['sandbox.session']);
});

test('api 2.2: a session to share with that is missing is named with its member', async () => {
    const { message } = refused(await open({ sandbox: { session: 'nobody' } }), 404, 'request_rejected');
    assert.match(message, /sandbox\.session.*nobody/);
});

test('api 2.2: the shared session is part of what a repeated PUT must equal', async () => {
    const [one, other] = [
        await newSession(world.app, { sandbox: {} }),
        await newSession(world.app, { sandbox: {} }),
    ];
    const agentId = await newAgent(world.app);
    const id = fresh('s');
    const body = { requestId: 'r', agentId, ownerUserId: 'ann', sandbox: { session: one } };
    const view = done(await world.app.put(`/v1/sessions/${id}`, body));
    assert.deepEqual(done(await world.app.put(`/v1/sessions/${id}`, { ...body, requestId: 'again' })), view);
    for (const sandbox of [{ session: other }, {}, false]) {
        refused(await world.app.put(`/v1/sessions/${id}`, { ...body, sandbox }), 409, 'request_rejected');
    }
});

test('sandbox-and-definitions I17: who shares with one that shares uses the same sandbox', async () => {
    const [owner, sharer] = await pair();
    const third = await newSession(world.app, { sandbox: { session: sharer } });
    assert.equal(done(await world.app.get(`/v1/sessions/${third}`)).sandboxOwnerId, owner);
    await turn(world.app, owner, bash('echo one > file'));
    await turn(world.app, sharer, bash('echo two >> file'));
    const read = done(await runTool(third, 'bash', { command: 'cat file' }));
    assert.equal(read.output.stdout, 'one\ntwo\n');
});

test('sandbox-and-definitions a4: what happens in the sandbox is in the record of the session that owns it', async () => {
    const [owner, sharer] = await pair();
    const own = await turn(world.app, sharer, bash('echo hi'));
    assert.equal(only(own, 'tool.completed').payload.output.stdout, 'hi\n');
    assert.ok(own.every((event) => !event.type.startsWith('sandbox.')));
    done(await runTool(sharer, 'write', { path: 'a', content: 'x' }));
    const told = (await events(owner)).map(({ type, turnId, payload }) => [type, turnId, payload.state ?? payload.tool]);
    assert.deepEqual(told, [
        ['sandbox.state', null, 'creating'],
        ['sandbox.state', null, 'running'],
        ['sandbox.exec', null, 'bash'],
        ['sandbox.exec', null, 'write'],
    ]);
});

test('sandbox-and-definitions I19: a turn of one session is refused while a turn of another has the sandbox', async () => {
    const [owner, sharer] = await pair();
    const third = await newSession(world.app, { sandbox: { session: owner } });
    for (const [holder, others] of [
        [owner, [sharer, third]],
        [sharer, [owner, third]],
    ] as [string, string[]][]) {
        await command(world.app, holder, message([{ delayMs: 600_000 }]));
        for (const other of others) {
            const body = message('hi');
            busy(await world.app.post(`/v1/sessions/${other}/commands`, body));
            for (const whenBusy of ['queue', 'steer']) busy(await say(other, 'hi', { whenBusy }));
            busy(await runTool(other, 'bash', { command: 'true' }));
            busy(await runTool(other, 'read', { path: 'a' }));
            assert.equal(done(await world.app.get(`/v1/sessions/${other}`)).activeTurnId, null);
        }
        // Its own turn is said as ever.
        refused(await runTool(holder, 'bash', { command: 'true' }), 409, 'request_rejected');
        refused(await say(holder, 'hi'), 409, 'request_rejected');
        await command(world.app, holder, cancel());
    }
    // A refused key is not used up.
    await command(world.app, owner, message([{ delayMs: 600_000 }]));
    const body = message('hi');
    busy(await world.app.post(`/v1/sessions/${sharer}/commands`, body));
    await command(world.app, owner, cancel());
    const { turnId } = await command(world.app, sharer, body);
    const ends = (event: any) => endsTurn(event) && event.turnId === turnId;
    assert.equal((await eventsUntil(world.app, sharer, ends)).at(-1).type, 'turn.completed');
});

test('sandbox-and-definitions I19: of messages to all sessions at once one begins a turn', async () => {
    const [owner, sharer] = await pair();
    const sessions = [owner, sharer];
    for (let n = 0; n < 4; n++) sessions.push(await newSession(world.app, { sandbox: { session: owner } }));
    const answers = await Promise.all(sessions.map((session) => say(session, [{ delayMs: 600_000 }])));
    const statuses = answers.map((answer) => answer.status).sort();
    assert.deepEqual(statuses, [200, 409, 409, 409, 409, 409]);
    for (const answer of answers.filter((answer) => answer.status !== 200)) busy(answer);
    const holder = sessions[answers.findIndex((answer) => answer.status === 200)]!;
    await command(world.app, holder, cancel());
});

test('decisions, Busy sessions: a message that waits begins its turn before another session has the sandbox', async () => {
    const [owner, sharer] = await pair();
    await command(world.app, owner, message([{ delayMs: 2_000 }, { text: 'one' }]));
    await command(world.app, owner, message([{ delayMs: 600_000 }], { whenBusy: 'queue' }));
    await eventsUntil(world.app, owner, endsTurn);
    busy(await say(sharer, 'hi'));
    await command(world.app, owner, cancel());
    assert.equal((await turn(world.app, sharer, 'hi')).at(-1).type, 'turn.completed');
});

test('overview, Two profiles: a kill -9 during a turn leaves the sandbox to the others once that turn has ended', async () => {
    const [owner, sharer] = await pair();
    await command(world.app, sharer, message([{ delayMs: 300 }, { text: 'end' }]));
    await world.server.kill();
    await world.server.start();
    await eventsUntil(world.app, sharer, endsTurn);
    await command(world.app, sharer, message(bash('sleep 600')));
    await eventsUntil(world.app, owner, (event) => event.type === 'sandbox.state' && event.payload.state === 'running');
    await world.server.kill();
    await world.server.start();
    await eventsUntil(world.app, sharer, (event) => event.type === 'effect.uncertain');
    busy(await say(owner, 'hi'));
    await command(world.app, sharer, cancel());
    assert.equal((await turn(world.app, owner, bash('true'))).at(-1).type, 'turn.completed');
});

test('api 3: a reset of sessions removes those that share a sandbox with the one that owns it', async () => {
    const [owner, sharer] = await pair();
    await turn(world.app, sharer, bash('echo mine > file'));
    const body = { requestId: 'r', scope: 'sessions', activeWork: 'cancel' };
    done(await world.management.post('/v1/tenant/reset', body));
    for (const session of [owner, sharer]) {
        refused(await world.app.get(`/v1/sessions/${session}`), 404, 'request_rejected');
    }
    const agentId = await newAgent(world.app);
    done(await world.app.put(`/v1/sessions/${owner}`, { requestId: 'r', agentId, ownerUserId: 'bob', sandbox: {} }));
    assert.equal(done(await runTool(owner, 'bash', { command: 'ls' })).output.stdout, '');
});

test('environments 3: calls of sessions that share a sandbox never meet in it, whoever makes them', async () => {
    const [owner, sharer] = await pair();
    const command = 'mkdir lock || echo CLASH; sleep 0.1; rmdir lock';
    const calls = [owner, sharer, owner, sharer].map((session) => runTool(session, 'bash', { command }));
    for (const answer of await Promise.all(calls)) {
        const { kind, output } = done(answer);
        assert.deepEqual([kind, output.exitCode, output.stdout], ['completed', 0, '']);
    }
    // A turn that begins while the application's call runs waits for it.
    const call = runTool(sharer, 'bash', { command: 'mkdir lock; sleep 0.4; rmdir lock; echo left' });
    await onDisk('lock');
    const events = await turn(world.app, owner, bash(command));
    const result = events.find((event: any) => event.type === 'tool.completed' || event.type === 'tool.result');
    assert.doesNotMatch(JSON.stringify(result ?? events), /CLASH/);
    assert.equal(done(await call).output.stdout, 'left\n');
});
