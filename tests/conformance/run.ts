// Runs the suite: each file on each database in a process of its own, which starts a server and ends it. Two at a time.
// Then coverage.test.ts for each database. Exits 1 when a test failed, or when one that is marked `todo` passes.

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

const FOLDER = new URL('.', import.meta.url).pathname;
const LAST = 'coverage.test.ts';
const AT_ONCE = 2;
const FILE_LIMIT_MS = 60_000;

interface Result {
    readonly name: string;
    readonly outcome: 'passed' | 'failed';
    /** Why it is expected to fail. */
    readonly todo?: string;
    readonly error?: string;
}

interface Job {
    readonly file: string;
    readonly database: string;
    readonly seen: string;
}

const running = new Set<ChildProcess>();

/** Runs one file on one database and tells how it went. */
async function runFile({ file, database, seen }: Job): Promise<Result[]> {
    const types = join(FOLDER, 'support/types.mjs');
    const reporter = join(FOLDER, 'support/reporter.mjs');
    const child = spawn(
        process.execPath,
        ['--no-warnings', '--import', types, `--test-reporter=${reporter}`, join(FOLDER, file)],
        {
            env: { ...process.env, CONFORMANCE_DATABASE: database, CONFORMANCE_SEEN: seen },
            stdio: ['ignore', 'pipe', 'pipe'],
            // A group of its own: the servers that a file started end with it.
            detached: true,
        },
    );
    running.add(child);
    const started = performance.now();
    const deadline = setTimeout(() => endGroup(child, 'SIGTERM'), FILE_LIMIT_MS);
    const [results, errors, code] = await Promise.all([readResults(child), text(child.stderr!), exitOf(child)]);
    clearTimeout(deadline);
    endGroup(child, 'SIGKILL');
    running.delete(child);
    if (code !== 0 && !results.some(failsTheRun)) {
        results.push({ name: `${file} ended with ${code}`, outcome: 'failed', error: errors });
    }
    print(file, database, results, (performance.now() - started) / 1000);
    return results;
}

async function readResults(child: ChildProcess): Promise<Result[]> {
    const results: Result[] = [];
    for await (const line of createInterface({ input: child.stdout! })) {
        try {
            results.push(JSON.parse(line));
        } catch {
            console.log(line);
        }
    }
    return results;
}

function exitOf(child: ChildProcess): Promise<number | string> {
    return new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal ?? 'nothing')));
}

function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
    try {
        process.kill(-child.pid!, signal);
    } catch {
        // Nothing of it is left.
    }
}

/** A failed test that is not expected to fail, or one that is and passed: then its mark is out of date. */
function failsTheRun({ outcome, todo }: Result): boolean {
    return (outcome === 'failed') === (todo === undefined);
}

function count(results: Result[]): string {
    const passed = results.filter((result) => result.outcome === 'passed' && result.todo === undefined).length;
    const todo = results.filter((result) => result.outcome === 'failed' && result.todo !== undefined).length;
    return `${passed} passed, ${todo} todo, ${results.filter(failsTheRun).length} failed`;
}

function print(file: string, database: string, results: Result[], seconds: number): void {
    console.log(`${database.padEnd(9)}${file.padEnd(22)}${count(results)} (${seconds.toFixed(1)} s)`);
    for (const { name, todo, error } of results.filter(failsTheRun)) {
        const why = todo === undefined ? error : `passes now: remove its mark "${todo}"`;
        console.log(`  not ok: ${name}\n    ${why?.replaceAll('\n', '\n    ')}`);
    }
}

/** Runs jobs, a few at a time, in their order. */
async function runAll(jobs: Job[]): Promise<Result[]> {
    const waiting = [...jobs];
    const worker = async () => {
        const results: Result[] = [];
        for (let job = waiting.shift(); job !== undefined; job = waiting.shift())
            results.push(...(await runFile(job)));
        return results;
    };
    return (await Promise.all(Array.from({ length: AT_ONCE }, worker))).flat();
}

/** The files to run: those that were named, or all. */
function chosenFiles(): string[] {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith('.test.ts') && name !== LAST);
    const wanted = process.argv.slice(2);
    const unknown = wanted.filter((name) => !files.includes(`${name}.test.ts`));
    if (unknown.length > 0) throw new Error(`no file ${unknown.join(', ')} among ${files.join(', ')}`);
    return wanted.length === 0 ? files : wanted.map((name) => `${name}.test.ts`);
}

const files = chosenFiles();
const databases = process.env.NYLORUN_TEST_POSTGRES_URL ? ['sqlite', 'postgres'] : ['sqlite'];
if (databases.length === 1) console.log('PostgreSQL is left out: NYLORUN_TEST_POSTGRES_URL is not set');

const folders = databases.map((database) => mkdtempSync(join(tmpdir(), `nylorun-seen-${database}-`)));
process.once('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
        for (const child of running) endGroup(child, 'SIGTERM');
        process.exit(1);
    });
}

const started = performance.now();
const jobs = files.flatMap((file) => databases.map((database, at) => ({ file, database, seen: folders[at]! })));
const results = await runAll(jobs);
// What a part of the suite met says nothing about the whole.
if (process.argv.length === 2) {
    results.push(...(await runAll(databases.map((database, at) => ({ file: LAST, database, seen: folders[at]! })))));
}

const differences = new Set(
    results.filter((result) => result.todo !== undefined).map((result) => `${result.name}: ${result.todo}`),
);
if (differences.size > 0) console.log('\nknown differences from the specification:');
for (const difference of differences) console.log(`  ${difference}`);
console.log(`\nconformance: ${count(results)} in ${((performance.now() - started) / 1000).toFixed(0)} s`);
process.exitCode = results.some(failsTheRun) ? 1 : 0;
