// What the suite has met so far: operations, refusals, event types. Each test process writes its part when it ends; the
// last file (coverage.test.ts) reads them all.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

export interface Seen {
    /** As `GET /v1/sessions/{id}`. */
    readonly operations: Set<string>;
    /** As `404 not_found`. */
    readonly refusals: Set<string>;
    readonly eventTypes: Set<string>;
}

const folder = process.env.CONFORMANCE_SEEN;

export const seen: Seen = { operations: new Set(), refusals: new Set(), eventTypes: new Set() };

/** Has this process write what it met when it ends. Called by those that start servers. */
export function keepSeen(): void {
    if (folder === undefined) return;
    process.once('exit', () => {
        const lists = Object.entries(seen).map(([kind, set]) => [kind, [...set]]);
        writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify(Object.fromEntries(lists)));
    });
}

/** What all processes met, or `undefined` when a file runs by itself. */
export function readSeen(): Seen | undefined {
    if (folder === undefined) return undefined;
    const parts = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
    const all = (kind: keyof Seen) => new Set<string>(parts.flatMap((part) => part[kind]));
    return { operations: all('operations'), refusals: all('refusals'), eventTypes: all('eventTypes') };
}
