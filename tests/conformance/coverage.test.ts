// Last: whether the suite has met every route, every error code that can be met, and every event type. It reads what
// the other files noted; run by itself it has nothing to compare.

import assert from 'node:assert/strict';
import test from 'node:test';
import { DATABASE } from './support/database.ts';
import { repositoryFile } from './support/files.ts';
import { OPERATIONS } from './support/openapi.ts';
import { PAYLOADS } from './support/payloads.ts';
import { readSeen } from './support/seen.ts';

/** Error codes that this version cannot send over HTTP, each with the reason. */
const UNREACHABLE: Record<string, string> = {
    subject_required: 'the A2A endpoint is not built',
    sandbox_not_granted: 'sandbox resources are not built',
    sandbox_unavailable: 'sandbox resources are not built',
    sandbox_lost: 'pods are not built',
    sandbox_expired: 'pods are not built',
    credential_conflict: 'vaults are not built',
    mcp_preview_failed: 'MCP is not built',
};

/** Statuses that this version cannot send with a code that it sends with others. */
const UNREACHABLE_STATUSES: Record<string, string> = {
    '409 limit_exceeded': 'sandbox resources are not built',
};

/** Codes that have a page and never come over HTTP (api 1.8). */
const NEVER_HTTP = ['credential_rejected', 'connection_missing', 'incompatible_host'];

/** These need a fault; only a database that is a server can be hurt from outside. */
const UNREACHABLE_HERE = DATABASE === 'postgres' ? [] : ['internal_error', 'reads_unavailable'];

/** Event types that nothing writes yet, each with the reason. */
const UNWRITTEN: Record<string, string> = {
    'command.respond': 'nothing asks for more than an approval before MCP is built',
};

/** The codes of the source with their statuses. */
function declaredCodes(): Map<string, number[]> {
    const lines = repositoryFile('crates/wire/src/code.rs').matchAll(/^ {4}\w+ = "(\w+)": ([\d ]+);$/gm);
    return new Map([...lines].map(([, code, statuses]) => [code!, statuses!.split(' ').map(Number)]));
}

/** The event types of the source, as clients up to protocol 10 know them. */
function declaredEventTypes(): string[] {
    const source = repositoryFile('crates/wire/src/event.rs');
    const table = /pub fn event_type\(.*?\n\}/s.exec(source)![0];
    const types = [...table.matchAll(/=> "([\w.]+)"/g)].map(([, type]) =>
        type!.replace(/^environment\./, 'sandbox.'),
    );
    return types.filter((type) => type !== 'transcript.updated');
}

function sorted(names: Iterable<string>): string[] {
    return [...new Set(names)].sort();
}

const codes = declaredCodes();
const unreachable = [...Object.keys(UNREACHABLE), ...UNREACHABLE_HERE];

test('api 1.8: codes of the source, of their pages and of the page that lists them are the same', () => {
    const listed = [...repositoryFile('docs/errors/README.md').matchAll(/^\| \[`(\w+)`\]\((\w+)\.md\) \|/gm)];
    assert.deepEqual(sorted(listed.map(([, code]) => code!)), sorted([...codes.keys(), ...NEVER_HTTP]));
    for (const [, code, page] of listed) {
        assert.equal(code, page);
        assert.match(repositoryFile(`docs/errors/${page}.md`), new RegExp(`^# \`${code}\``), page);
    }
});

test('api 1.8: the codes that cannot be sent are those that the documentation calls so', () => {
    const table = repositoryFile('docs/errors/README.md');
    const notYet = [...table.matchAll(/^\| \[`(\w+)`\].*\| not sent yet \|$/gm)].map(([, code]) => code!);
    assert.deepEqual(sorted(notYet), sorted([...Object.keys(UNREACHABLE), ...NEVER_HTTP]));
});

const met = readSeen();

if (met !== undefined) {
    const refusals = [...met.refusals].map((refusal) => refusal.split(' ') as [string, string]);
    const metCodes = refusals.map(([, code]) => code);

    test('every route of the OpenAPI documents was called', () => {
        const uncalled = [...OPERATIONS.keys()].filter((name) => !met.operations.has(name));
        assert.deepEqual(uncalled, []);
    });

    test('every error code was met, or is on the list of those that cannot be sent', () => {
        const expected = [...codes.keys()].filter((code) => !unreachable.includes(code));
        assert.deepEqual(sorted(metCodes), sorted(expected));
    });

    test('every code came with statuses that the source declares for it, and with all that can be met', () => {
        const declared = [...codes].filter(([code]) => !unreachable.includes(code));
        const pairs = declared.flatMap(([code, statuses]) => statuses.map((status) => `${status} ${code}`));
        assert.deepEqual(sorted(met.refusals), sorted(pairs.filter((pair) => !(pair in UNREACHABLE_STATUSES))));
    });

    test('every event type was met, and no other', () => {
        const written = declaredEventTypes().filter((type) => !(type in UNWRITTEN));
        assert.deepEqual(sorted(met.eventTypes), sorted(written));
        assert.deepEqual(sorted(Object.keys(PAYLOADS)), sorted(declaredEventTypes()));
    });
}
