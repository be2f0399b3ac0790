// The database that a server gets: a file in its home, or one of its own on the PostgreSQL of the tests.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import process from 'node:process';

export const DATABASE = process.env.CONFORMANCE_DATABASE === 'postgres' ? 'postgres' : 'sqlite';

export interface Database {
    /** Environment variables for the server. */
    readonly variables: Record<string, string>;
    /** Runs SQL as an operator would; PostgreSQL only. */
    readonly sql?: (statement: string) => void;
    readonly remove: () => void;
}

let made = 0;

/** A new, empty database of the kind that this run tests. */
export function newDatabase(): Database {
    if (DATABASE === 'sqlite') return { variables: {}, remove: () => {} };
    const server = process.env.NYLORUN_TEST_POSTGRES_URL;
    if (!server) throw new Error('NYLORUN_TEST_POSTGRES_URL is not set; scripts/postgres with COMMAND sets it');
    const name = `conformance_${process.pid}_${made++}`;
    const url = server.replace(/\/[^/]*$/, `/${name}`);
    psql(server, `CREATE DATABASE ${name}`);
    return {
        variables: { NYLORUN_DATABASE_URL: url },
        sql: (statement) => psql(url, statement),
        remove: () => psql(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
    };
}

function psql(url: string, statement: string): void {
    const options = ['--quiet', '--no-psqlrc', '--set', 'ON_ERROR_STOP=1'];
    const { status } = spawnSync(program(), [...options, '--command', statement, url], {
        stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (status !== 0) throw new Error(`psql answered ${status} to ${statement}`);
}

/** Debian keeps PostgreSQL's programs out of PATH, one folder a version. */
function program(): string {
    const folder = '/usr/lib/postgresql';
    try {
        const versions = readdirSync(folder).sort((a, b) => Number(b) - Number(a));
        return versions.length > 0 ? `${folder}/${versions[0]}/bin/psql` : 'psql';
    } catch {
        return 'psql';
    }
}
