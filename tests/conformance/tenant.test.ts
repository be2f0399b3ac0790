// The tenant: status, settings, models (api 3, 3.1, 3.2).

import assert from 'node:assert/strict';
import test from 'node:test';
import { done, problemPaths, refused } from './support/client.ts';
import { fresh, newAgent, newSession, only, openWorld, turn } from './support/world.ts';

const world = await openWorld('none');

const CUSTOM = { provider: 'custom', model: 'small', baseUrl: 'http://127.0.0.1:9/v1' };
const API_KEY = { type: 'api_key', key: 'secret-of-the-test' };

function putModel(members: object) {
    const body = { requestId: 'r', idempotencyKey: fresh('model'), auth: API_KEY, ...members };
    return world.management.put('/v1/tenant/model', body);
}

function select(members: object) {
    return world.management.put('/v1/tenant/model/selection', {
        requestId: 'r',
        idempotencyKey: fresh('select'),
        ...members,
    });
}

function seed(members: object) {
    return world.management.put('/v1/tenant/config/seed', { requestId: 'r', ...members });
}

test('api 3.2: without a model the view says so, and no provider has a credential', async () => {
    assert.deepEqual(done(await world.management.get('/v1/tenant/model')), { configured: false });
    assert.deepEqual(done(await world.management.get('/v1/tenant/providers')), { providers: [] });
});

test('decisions, No model: the message is accepted, and the turn fails model.auth and names the command', async () => {
    const session = await newSession(world.app);
    const { error } = only(await turn(world.app, session, 'x'), 'turn.failed').payload;
    assert.equal(error.code, 'model.auth');
    assert.match(error.message, /nylorun model set/);
});

test('api 3.1: the status of the tenant', async () => {
    const agentId = await newAgent(world.app);
    const { tenant, path, checks, model, agents, counts, sandbox } = done(await world.management.get('/v1/tenant'));
    assert.match(tenant.id, /^tn_[0-9a-hjkmnp-tv-z]{26}$/);
    assert.equal(typeof path, 'string');
    assert.deepEqual(checks, { store: true, scheduler: true, model: false, schema: true });
    assert.deepEqual(model, { configured: false });
    assert.ok(agents.some((agent: any) => agent.agentId === agentId));
    assert.deepEqual([counts.sessions, counts.runningSessions, counts.uncertainEffects], [1, 0, 0]);
    assert.deepEqual(sandbox, { backend: 'virtual', retained: 0 });
});

test('api 3: the catalogue of models', async () => {
    const { providers } = done(await world.management.get('/v1/tenant/models'));
    const ids = providers.map((provider: any) => provider.id);
    assert.ok(ids.includes('anthropic'), ids.join());
    assert.ok(
        providers.every((provider: any) => provider.id === 'custom' || provider.models.length > 0),
        ids.join(),
    );
});

test('decisions, Small print: choosing a provider without a credential is 409', async () => {
    const { providers } = done(await world.management.get('/v1/tenant/models'));
    const anthropic = providers.find((provider: any) => provider.id === 'anthropic');
    const model = { provider: 'anthropic', model: anthropic.models[0].id };
    refused(await select(model), 409, 'request_rejected');
});

test('api 3.2: unknown providers and models are 400; baseUrl belongs to custom alone', async () => {
    const { providers } = done(await world.management.get('/v1/tenant/models'));
    const known = providers.find((provider: any) => provider.id === 'anthropic').models[0].id;
    refused(await putModel({ provider: 'nobody', model: 'x' }), 400, 'request_rejected');
    refused(await putModel({ provider: 'anthropic', model: 'no-such-model' }), 400, 'request_rejected');
    refused(
        await putModel({ provider: 'anthropic', model: known, baseUrl: 'https://x.example' }),
        400,
        'request_rejected',
    );
    refused(await putModel({ provider: 'custom', model: 'small' }), 400, 'request_rejected');
    refused(await putModel({ ...CUSTOM, baseUrl: 'ftp://x.example' }), 400, 'request_rejected');
    refused(await select({ provider: 'nobody', model: 'x' }), 400, 'request_rejected');
});

test('api 3.2: settings have bounds, and every problem is told', async () => {
    const settings = { contextWindow: 1023, maxTokens: 0, reasoning: 'yes', compat: [] };
    const paths = problemPaths(await putModel({ ...CUSTOM, settings, auth: { type: 'api_key' } }));
    assert.deepEqual(paths, [
        'auth.key',
        'settings.compat',
        'settings.contextWindow',
        'settings.maxTokens',
        'settings.reasoning',
    ]);
    refused(await putModel({ ...CUSTOM, auth: { type: 'password', key: 'x' } }), 400, 'request_rejected');
    refused(await putModel({ ...CUSTOM, extra: 1 }), 400, 'request_rejected');
});

test('api 3: a seed writes only what is unset, and a model switches the fixture off', async () => {
    assert.deepEqual(done(await seed({ fixtureModel: true })), { applied: ['model.fixture'], kept: [] });
    assert.deepEqual(done(await seed({ fixtureModel: true })).applied, []);
    assert.equal(done(await world.management.get('/v1/tenant')).checks.model, true);
    const session = await newSession(world.app);
    assert.equal((await turn(world.app, session, 'x')).at(-1).type, 'turn.completed');
    refused(await seed({ fixtureModel: false }), 400, 'request_rejected');
    refused(await seed({ sandbox: { backend: 'docker' } }), 400, 'request_rejected');
    assert.deepEqual(done(await seed({ sandbox: { backend: 'auto' } })), { applied: ['sandbox.backend'], kept: [] });
    assert.deepEqual(done(await seed({ sandbox: { backend: 'virtual' } })), {
        applied: [],
        kept: ['sandbox.backend'],
    });
});

test('api 3.2: a model is set, shown without its secret, and kept by a seed', async () => {
    const settings = { contextWindow: 4096, compat: { a: 1 } };
    const view = done(await putModel({ ...CUSTOM, settings }));
    assert.deepEqual(view, { configured: true, ...CUSTOM, authType: 'api_key', settings });
    assert.deepEqual(done(await world.management.get('/v1/tenant/model')), view);
    const listed = await world.management.get('/v1/tenant/providers');
    const [{ lastUpdated, name, ...provider }] = done(listed).providers;
    assert.deepEqual(provider, {
        id: 'custom',
        model: 'small',
        authType: 'api_key',
        baseUrl: CUSTOM.baseUrl,
        settings,
        active: true,
    });
    assert.ok(!listed.text.includes(API_KEY.key));
    assert.deepEqual(done(await seed({ model: { ...CUSTOM, model: 'other', auth: API_KEY } })).kept, ['model']);
    assert.equal(done(await world.management.get('/v1/tenant')).checks.model, true);
});

test('api 1.9: the same model write again gets the same answer', async () => {
    const key = { idempotencyKey: 'one' };
    const first = done(await putModel({ ...CUSTOM, ...key }));
    assert.deepEqual(done(await putModel({ ...CUSTOM, ...key, requestId: 'again' })), first);
});

test('api 1.9: a model write under a used key with another body is 409', async () => {
    const key = { idempotencyKey: 'two' };
    done(await putModel({ ...CUSTOM, ...key }));
    const { message } = refused(await putModel({ ...CUSTOM, model: 'other', ...key }), 409, 'request_rejected');
    assert.match(message, /^Idempotency key/);
});

test('api 1.9: a repeated model write gets its first answer and changes nothing any more', async () => {
    const first = { ...CUSTOM, idempotencyKey: 'three' };
    const answer = done(await putModel(first));
    done(await select({ ...CUSTOM, model: 'larger', idempotencyKey: 'four' }));
    assert.deepEqual(done(await putModel(first)), answer);
    assert.equal(done(await world.management.get('/v1/tenant/model')).model, 'larger');
    refused(await select({ ...CUSTOM, model: 'small', idempotencyKey: 'four' }), 409, 'request_rejected');
    // A key that was refused may be used again.
    refused(await putModel({ ...CUSTOM, provider: 'none', idempotencyKey: 'five' }), 400, 'request_rejected');
    done(await putModel({ ...CUSTOM, idempotencyKey: 'five' }));
});

test('api 3: another model of a provider that has a credential is chosen without it', async () => {
    const view = done(await select({ ...CUSTOM, model: 'larger' }));
    assert.deepEqual([view.provider, view.model], ['custom', 'larger']);
    assert.equal(done(await world.management.get('/v1/tenant/model')).model, 'larger');
});

test('api 4.2: an endpoint that cannot be reached fails the turn with a model code', async () => {
    const session = await newSession(world.app);
    const { error } = only(await turn(world.app, session, 'x'), 'turn.failed').payload;
    assert.match(error.code, /^model\.(transient|timeout)$/);
    assert.ok(!JSON.stringify(error).includes(API_KEY.key));
});
