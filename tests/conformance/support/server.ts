// A real server in a home directory of its own.

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { newDatabase } from './database.ts';
import type { Database } from './database.ts';
import { keepSeen } from './seen.ts';

const BINARY = process.env.NYLORUN_BIN ?? new URL('../../../target/debug/nylorun', import.meta.url).pathname;
const READY = /^nylorun is ready at (http:\/\/127\.0\.0\.1:\d+)$/;

export class Server {
    readonly home = mkdtempSync(join(tmpdir(), 'nylorun-conformance-'));
    readonly database: Database = newDatabase();
    /** Variables beside those that every server has. */
    readonly variables: Record<string, string>;
    url = '';
    applicationKey = '';
    managementKey = '';
    #child: ChildProcess | undefined;
    #disposed = false;

    constructor(variables: Record<string, string> = {}) {
        this.variables = variables;
    }

    /** Starts a server, at the address of the last start if there was one. */
    async start(): Promise<void> {
        const listen = this.url === '' ? '127.0.0.1:0' : new URL(this.url).host;
        const variables = { PATH: process.env.PATH, HOME: this.home, ...this.database.variables, ...this.variables };
        const log = openSync(join(this.home, 'server.log'), 'a');
        const child = spawn(BINARY, ['serve', '--home', this.home, '--listen', listen], {
            env: variables,
            stdio: ['ignore', 'pipe', log],
        });
        closeSync(log);
        this.#child = child;
        this.url = await this.#address(child);
        const keys = JSON.parse(readFileSync(join(this.home, 'host-credentials.json'), 'utf8'));
        this.applicationKey = keys.applicationKey.key;
        this.managementKey = keys.managementKey.key;
    }

    async #address(child: ChildProcess): Promise<string> {
        for await (const line of createInterface({ input: child.stdout! })) {
            const found = READY.exec(line);
            if (found) return found[1]!;
        }
        throw new Error(`the server did not start:\n${this.log()}`);
    }

    /** Ends the process as a crash would: at once, with no warning. */
    async kill(): Promise<void> {
        await this.#end('SIGKILL');
    }

    /** Ends the process as an operator would; answers its exit code. */
    async stop(): Promise<number | null> {
        return this.#end('SIGTERM');
    }

    async #end(signal: NodeJS.Signals): Promise<number | null> {
        const child = this.#child;
        if (child === undefined || child.exitCode !== null || child.signalCode !== null)
            return child?.exitCode ?? null;
        const ended = once(child, 'exit');
        child.kill(signal);
        await ended;
        return child.exitCode;
    }

    /** What it wrote to standard error. */
    log(): string {
        return readFileSync(join(this.home, 'server.log'), 'utf8');
    }

    /** Ends it whatever its state is, and removes all that it left. */
    dispose(): void {
        if (this.#disposed) return;
        this.#disposed = true;
        this.#child?.kill('SIGKILL');
        this.database.remove();
        rmSync(this.home, { recursive: true, force: true });
    }
}

/** A running server that is gone when the test process ends, however it ends. */
export async function startServer(variables: Record<string, string> = {}): Promise<Server> {
    const server = new Server(variables);
    process.once('exit', () => server.dispose());
    process.once('SIGTERM', () => process.exit(1));
    await server.start();
    return server;
}

keepSeen();
