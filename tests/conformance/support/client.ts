// Requests as today's clients make them. Every answer is checked against the OpenAPI documents on its way.

import assert from 'node:assert/strict';
import { answerProblems, bodyProblems, eventProblems, operationOf } from './openapi.ts';
import { payloadProblems } from './payloads.ts';
import { seen } from './seen.ts';

export interface Answer {
    readonly status: number;
    readonly headers: Headers;
    /** The body as it came. */
    readonly text: string;
    /** The body read as JSON; `undefined` when there is none. */
    readonly body: any;
}

export interface Options {
    /** Sent as JSON. */
    readonly body?: unknown;
    /** Sent as it stands; wins over `body`. */
    readonly text?: string;
    /** Sent as they stand; win over both. */
    readonly bytes?: Uint8Array<ArrayBuffer>;
    /** Added to those of the client; `null` leaves one out. */
    readonly headers?: Record<string, string | null>;
}

export const NEWEST_PROTOCOL = '10';

export class Client {
    readonly url: string;
    readonly headers: Record<string, string>;

    constructor(url: string, headers: Record<string, string>) {
        this.url = url;
        this.headers = headers;
    }

    /** The same client with other headers beside its own. */
    with(headers: Record<string, string>): Client {
        return new Client(this.url, { ...this.headers, ...headers });
    }

    get(path: string, options: Options = {}): Promise<Answer> {
        return this.send('GET', path, options);
    }

    put(path: string, body?: unknown, options: Options = {}): Promise<Answer> {
        return this.send('PUT', path, { body, ...options });
    }

    post(path: string, body?: unknown, options: Options = {}): Promise<Answer> {
        return this.send('POST', path, { body, ...options });
    }

    head(path: string, options: Options = {}): Promise<Answer> {
        return this.send('HEAD', path, options);
    }

    delete(path: string, options: Options = {}): Promise<Answer> {
        return this.send('DELETE', path, options);
    }

    async send(method: string, path: string, options: Options = {}): Promise<Answer> {
        const response = await this.open(method, path, options);
        const text = await response.text();
        const type = response.headers.get('content-type');
        const body = text === '' ? undefined : JSON.parse(text);
        if (text !== '') assert.equal(type, 'application/json', `${method} ${path}`);
        return check(method, path, { status: response.status, headers: response.headers, text, body }, options);
    }

    /** A request whose answer is read by the caller. */
    async open(method: string, path: string, options: Options & { signal?: AbortSignal } = {}): Promise<Response> {
        const json = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
        const text = options.bytes === undefined ? json : undefined;
        const headers: Record<string, string> = { ...this.headers };
        if (text !== undefined) headers['content-type'] = 'application/json';
        for (const [name, value] of Object.entries(options.headers ?? {})) {
            if (value === null) delete headers[name];
            else headers[name] = value;
        }
        const operation = operationOf(method, path);
        if (operation !== undefined) seen.operations.add(operation.name);
        const { signal = null } = options;
        return fetch(this.url + path, { method, headers, body: options.bytes ?? text ?? null, signal, redirect: 'error' });
    }
}

/** Notes what an answer is, and fails when it is not as the documents say. */
function check(method: string, path: string, answer: Answer, sent: Options): Answer {
    const { status, body } = answer;
    if (body?.status === 'rejected') seen.refusals.add(`${status} ${body.code}`);
    const operation = operationOf(method, path);
    if (operation === undefined) return answer;
    const place = `${operation.name} answered ${status} ${answer.text.slice(0, 400)}`;
    const unread = operation.name === 'GET /v1/sessions/{id}/events' && status === 200;
    if (!unread) assert.equal(answerProblems(operation, status, body), '', place);
    if (status === 200 && sent.bytes === undefined) {
        const sentBody = sent.text ? JSON.parse(sent.text) : sent.body;
        assert.equal(bodyProblems(operation, sentBody), '', `${place}, so the document must allow the body`);
    }
    if (operation.name === 'GET /v1/sessions/{id}/items' && status === 200) body.items.forEach(checkEvent);
    return answer;
}

/** Notes an event, and fails when its envelope or payload is not as specified. */
export function checkEvent(event: any): void {
    seen.eventTypes.add(event.type);
    assert.equal(eventProblems(event), '', JSON.stringify(event));
    assert.equal(payloadProblems(event), '', JSON.stringify(event));
}

/** Fails unless the answer is this refusal; answers its body. */
export function refused(answer: Answer, status: number, code: string): any {
    const told = { status: answer.status, code: answer.body?.code };
    assert.deepEqual(told, { status, code }, answer.text);
    assert.equal(answer.body.status, 'rejected');
    return answer.body;
}

/** Fails unless the answer is 200; answers its body. */
export function done(answer: Answer): any {
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
}

/** The problems of a 400 to a body: `[{code, path, message}]` as JSON text in `message`. */
export function problemsOf(answer: Answer): { code: string; path: (string | number)[]; message: string }[] {
    const { message } = refused(answer, 400, 'request_rejected');
    const problems = JSON.parse(message);
    assert.ok(Array.isArray(problems) && problems.length > 0, message);
    for (const problem of problems) {
        assert.equal(typeof problem.code, 'string', message);
        assert.ok(Array.isArray(problem.path), message);
        assert.equal(typeof problem.message, 'string', message);
    }
    return problems;
}

/** The paths of those problems, as `a.b.0`, sorted. */
export function problemPaths(answer: Answer): string[] {
    return problemsOf(answer)
        .map((problem) => problem.path.join('.'))
        .sort();
}
