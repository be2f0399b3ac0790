// Lets Node.js before 22.18, which does not strip types by itself, run this suite: the same stripper, as a hook.
import { readFile } from 'node:fs/promises';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

if (isMainThread && !process.features.typescript) register(import.meta.url);

export async function load(url, context, next) {
    if (!url.endsWith('.ts')) return next(url, context);
    const { transformSync } = await import('amaro');
    const text = await readFile(new URL(url), 'utf8');
    return { format: 'module', source: transformSync(text, { mode: 'strip-only' }).code, shortCircuit: true };
}
