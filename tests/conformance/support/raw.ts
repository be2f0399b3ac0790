// Requests that no HTTP library would send: other Hosts, headers sent twice, malformed paths.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { seen } from './seen.ts';

export interface RawAnswer {
    readonly status: number;
    /** Names in lower case; of a name that comes twice, the last. */
    readonly headers: Record<string, string>;
    readonly body: any;
    readonly text: string;
}

/** Sends the lines as a request's head, with `Connection: close`, and reads the answer to its end. */
export async function rawRequest(url: string, head: string[], body: string | Buffer = ''): Promise<RawAnswer> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.write([...head, 'Connection: close', '', ''].join('\r\n'));
    socket.write(body);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    return parseAnswer(Buffer.concat(chunks).toString('utf8'));
}

function parseAnswer(answer: string): RawAnswer {
    const [head, ...rest] = answer.split('\r\n\r\n');
    const [first, ...lines] = head!.split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first!)?.[1]);
    assert.ok(status >= 200, `no answer: ${JSON.stringify(answer)}`);
    const headers = lines
        .map((line) => /^([^:]+): *(.*)$/.exec(line)!)
        .map(([, name, value]) => [name!.toLowerCase(), value]);
    const text = rest.join('\r\n\r\n');
    const body = text.startsWith('{') ? JSON.parse(text) : undefined;
    if (body?.status === 'rejected') seen.refusals.add(`${status} ${body.code}`);
    return { status, headers: Object.fromEntries(headers), body, text };
}
