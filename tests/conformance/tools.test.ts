// The six workspace tools over POST /v1/sessions/{id}/sandbox/{tool} (api 2.5; sandbox-and-definitions a2, a3).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, refused } from './support/client.ts';
import { command, message, newSession, openWorld } from './support/world.ts';

const world = await openWorld();
const session = await newSession(world.app, { sandbox: {} });

/** The outcome of a tool call. */
async function call(tool: string, input: object): Promise<any> {
    return done(await world.app.post(`/v1/sessions/${session}/sandbox/${tool}`, input));
}

async function output(tool: string, input: object): Promise<any> {
    const outcome = await call(tool, input);
    assert.equal(outcome.kind, 'completed', JSON.stringify(outcome));
    return outcome.output;
}

async function failure(tool: string, input: object): Promise<string> {
    const outcome = await call(tool, input);
    assert.equal(outcome.kind, 'failed', JSON.stringify(outcome));
    assert.ok(outcome.message.length > 0);
    return outcome.code;
}

test('sandbox-and-definitions a3: bash answers exit code and both streams; a non-zero exit is data (I1)', async () => {
    const given = await output('bash', { command: 'echo out; echo err >&2; exit 3' });
    assert.deepEqual(given, { exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
});

test('sandbox-and-definitions a3: bash works in /workspace, and files stay between calls', async () => {
    assert.equal((await output('bash', { command: 'pwd' })).stdout, '/workspace\n');
    await output('bash', { command: 'echo kept > kept.txt' });
    assert.equal((await output('bash', { command: 'cat kept.txt' })).stdout, 'kept\n');
});

test('sandbox-and-definitions a6: HOME, LANG and TERM are set, and no secret is (I13)', async () => {
    const { stdout } = await output('bash', { command: 'echo $HOME $LANG $TERM; env' });
    assert.match(stdout, /^\/workspace C\.UTF-8 dumb\n/);
    assert.doesNotMatch(stdout, /NYLORUN_/);
});

test('sandbox-and-definitions a3: a stream above 30,000 characters keeps its first and last 15,000', async () => {
    const given = await output('bash', { command: "printf 'a%.0s' $(seq 20000); printf 'b%.0s' $(seq 20000)" });
    assert.equal(given.truncated, true);
    assert.ok(given.stdout.startsWith('a'.repeat(15_000)));
    assert.ok(given.stdout.endsWith('b'.repeat(15_000)));
    assert.match(given.stdout.slice(15_000, -15_000), /10,?000/);
});

test('sandbox-and-definitions a3, I4: a time-out is exit code 124, and earlier output is kept', async () => {
    const given = await output('bash', { command: 'echo before; sleep 30', timeout: 1 });
    assert.deepEqual([given.exitCode, given.timedOut, given.stdout], [124, true, 'before\n']);
    assert.match(given.stderr, /1/);
});

test('sandbox-and-definitions a3: write answers the absolute path and the bytes, and makes folders', async () => {
    assert.deepEqual(await output('write', { path: 'deep/er/ü.txt', content: 'ü\n' }), {
        path: '/workspace/deep/er/ü.txt',
        bytes: 3,
    });
    assert.deepEqual(await output('write', { path: '/workspace/empty', content: '' }), {
        path: '/workspace/empty',
        bytes: 0,
    });
});

test('sandbox-and-definitions a3: read numbers lines from 1, right-aligned, with a tab', async () => {
    const content = Array.from({ length: 12 }, (_, at) => `line ${at + 1}`).join('\n') + '\n';
    await output('write', { path: 'lines', content });
    const whole = await output('read', { path: 'lines' });
    assert.equal(whole.split('\n')[0], ' 1\tline 1');
    assert.equal(whole.split('\n')[11], '12\tline 12');
    assert.equal(whole.split('\n').length, 12);
    const part = (await output('read', { path: 'lines', offset: 3, limit: 2 })).split('\n');
    assert.deepEqual(part.slice(0, 2), ['3\tline 3', '4\tline 4']);
    assert.match(part[2], /8.*5|5.*8/);
    assert.equal(await output('read', { path: 'lines', offset: 99 }), '');
    assert.match(await output('read', { path: 'empty' }), /empty/);
});

test('sandbox-and-definitions a3: a line above 2,000 characters is cut with an ellipsis', async () => {
    await output('write', { path: 'long', content: 'x'.repeat(2_001) });
    assert.match(await output('read', { path: 'long' }), /^1\tx{2000}…$/);
});

test('sandbox-and-definitions a3, I2: edit replaces literally, and says why it changed nothing', async () => {
    await output('write', { path: 'edit', content: 'a.b a.b axb' });
    const edit = (old_string: string, new_string: string, more: object = {}) => ({
        path: 'edit',
        old_string,
        new_string,
        ...more,
    });
    assert.equal(await failure('edit', edit('a.b', 'c')), 'sandbox.edit_not_unique');
    assert.equal(await failure('edit', edit('zzz', 'c')), 'sandbox.edit_no_match');
    assert.equal(await failure('edit', edit('a.b', 'a.b')), 'sandbox.edit_noop');
    assert.equal(await failure('edit', { ...edit('a', 'b'), path: 'none' }), 'sandbox.not_found');
    const done = await output('edit', edit('a.b', 'c', { replace_all: true }));
    assert.deepEqual(done, { path: '/workspace/edit', replacements: 2 });
    assert.equal(await output('read', { path: 'edit' }), '1\tc c axb');
});

test('sandbox-and-definitions a3: grep prints path:line:text with paths as given', async () => {
    await output('write', { path: 'g/one.txt', content: 'alpha\nBeta 12\n' });
    await output('write', { path: 'g/two.md', content: 'alpha beta\n' });
    assert.equal(await output('grep', { pattern: 'alpha', path: 'g' }), 'g/one.txt:1:alpha\ng/two.md:1:alpha beta');
    assert.equal(await output('grep', { pattern: '[0-9]+$', path: 'g' }), 'g/one.txt:2:Beta 12');
    assert.equal(
        await output('grep', { pattern: 'beta', path: 'g', ignore_case: true, glob: '*.txt' }),
        'g/one.txt:2:Beta 12',
    );
    const cut = (await output('grep', { pattern: 'a', path: 'g', max_results: 1 })).split('\n');
    assert.equal(cut[0], 'g/one.txt:1:alpha');
    assert.equal(cut.length, 2);
    const nothing = await output('grep', { pattern: 'zzzz', path: 'g' });
    assert.doesNotMatch(nothing, /:\d+:/);
    assert.equal(await failure('grep', { pattern: '(', path: 'g' }), 'sandbox.grep_failed');
});

test('sandbox-and-definitions a3: glob prints absolute paths of files; * does not cross a slash, ** does', async () => {
    await output('bash', { command: 'mkdir -p t/sub t/.git; touch t/a.md t/sub/b.md t/c.txt t/.git/d.md' });
    const found = async (pattern: string) => (await output('glob', { pattern, path: 't' })).split('\n');
    assert.deepEqual(await found('*.md'), ['/workspace/t/a.md', '/workspace/t/sub/b.md']);
    assert.deepEqual(await found('sub/*.md'), ['/workspace/t/sub/b.md']);
    assert.deepEqual(await found('**/*.md'), ['/workspace/t/a.md', '/workspace/t/sub/b.md']);
    assert.equal((await found('none*')).length, 1);
});

test('decisions, Workspaces: nothing of the host is reachable by path or link', async () => {
    assert.equal(await failure('read', { path: '/etc/passwd' }), 'sandbox.not_found');
    assert.equal(await failure('read', { path: '../../../../etc/passwd' }), 'sandbox.not_found');
    await output('bash', { command: 'ln -s /etc/passwd link; ln -s ../../../../etc far' });
    assert.equal(await failure('read', { path: 'link' }), 'sandbox.not_found');
    assert.equal(await failure('read', { path: 'far/passwd' }), 'sandbox.not_found');
});

test('decisions, Small print: invalid input is 200 with tool.invalid-arguments and the paths', async () => {
    const wrong: [string, object, string][] = [
        ['bash', {}, 'command'],
        ['bash', { command: '' }, 'command'],
        ['bash', { command: 'x', timeout: 601 }, 'timeout'],
        ['bash', { command: 'x', timeout: 1.5 }, 'timeout'],
        ['read', { path: 'a', offset: 0 }, 'offset'],
        ['read', { path: 'a', limit: 5001 }, 'limit'],
        ['write', { path: 'a' }, 'content'],
        ['edit', { path: 'a', old_string: '', new_string: '' }, 'old_string'],
        ['grep', { pattern: 'a', max_results: 1001 }, 'max_results'],
        ['glob', { pattern: 7 }, 'pattern'],
    ];
    for (const [tool, input, path] of wrong) {
        const outcome = await call(tool, input);
        assert.deepEqual([outcome.kind, outcome.code], ['failed', 'tool.invalid-arguments'], JSON.stringify(input));
        assert.match(outcome.message, new RegExp(path), tool);
    }
});

test('api 2.5: requestId is dropped from the input, and an absent body is an empty one', async () => {
    assert.equal((await output('bash', { command: 'echo x', requestId: 'r' })).stdout, 'x\n');
    const none = done(await world.app.post(`/v1/sessions/${session}/sandbox/read`));
    assert.equal(none.code, 'tool.invalid-arguments');
});

test('api 2.5: an unknown tool, or a body that is no object, is 400', async () => {
    refused(await world.app.post(`/v1/sessions/${session}/sandbox/rm`, {}), 400, 'request_rejected');
    for (const text of ['[]', '"x"', 'null', '1']) {
        refused(
            await world.app.post(`/v1/sessions/${session}/sandbox/bash`, undefined, { text }),
            400,
            'request_rejected',
        );
    }
});

test('api 2.5: while a turn is active, tools are 409', async () => {
    const busy = await newSession(world.app, { sandbox: {} });
    await command(world.app, busy, message([{ delayMs: 60_000 }, { text: 'late' }]));
    refused(await world.app.post(`/v1/sessions/${busy}/sandbox/read`, { path: 'a' }), 409, 'request_rejected');
});

test('sandbox-and-definitions a3: a lone surrogate reaches files as U+FFFD', async () => {
    const { bytes } = await output('write', { path: 'odd', content: 'a\ud800b' });
    assert.equal(bytes, 5);
    assert.equal(await output('read', { path: 'odd' }), '1\ta\ufffdb');
});
