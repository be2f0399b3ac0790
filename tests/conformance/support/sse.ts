// A reader of Server-Sent Events, by hand: frames come from bytes that may be cut anywhere.

import assert from 'node:assert/strict';
import { checkEvent } from './client.ts';
import type { Client } from './client.ts';

export interface Frame {
    readonly id?: string;
    readonly event?: string;
    readonly data?: string;
    /** A line that begins with a colon. */
    readonly comment?: string;
}

/** Makes frames of text that arrives in pieces; an unfinished frame is kept until its empty line. */
export class FrameParser {
    #rest = '';

    push(text: string): Frame[] {
        const parts = (this.#rest + text).split('\n\n');
        this.#rest = parts.pop()!;
        return parts.map(parseFrame);
    }
}

function parseFrame(block: string): Frame {
    const frame: Record<string, string> = {};
    for (const line of block.split('\n')) {
        const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!;
        const field = name === '' ? 'comment' : name!;
        frame[field] = field in frame ? `${frame[field]}\n${value}` : value!;
    }
    return frame;
}

export interface FollowOptions {
    /** Sent as `Last-Event-ID`. */
    readonly lastEventId?: string | undefined;
    /** As `cursor=…&deltas=true`. */
    readonly query?: string;
    /** After how many bytes of the body the connection is cut. */
    readonly cutAfterBytes?: number;
}

/** Frames of a session's stream until it ends, the caller leaves, or the connection is cut. */
export async function* follow(client: Client, session: string, options: FollowOptions = {}): AsyncGenerator<Frame> {
    const abort = new AbortController();
    const query = options.query === undefined ? '' : `?${options.query}`;
    const resume: Record<string, string> =
        options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId };
    const path = `/v1/sessions/${encodeURIComponent(session)}/events${query}`;
    const response = await client.open('GET', path, { headers: resume, signal: abort.signal });
    assert.equal(response.status, 200, `${path} answered ${response.status}`);
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    try {
        yield* frames(response, options.cutAfterBytes ?? Infinity);
    } finally {
        abort.abort();
    }
}

async function* frames(response: Response, cutAfterBytes: number): AsyncGenerator<Frame> {
    const parser = new FrameParser();
    const decoder = new TextDecoder();
    let left = cutAfterBytes;
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
        const taken = bytes.subarray(0, left);
        left -= taken.length;
        for (const frame of parser.push(decoder.decode(taken, { stream: true }))) {
            if (frame.id !== undefined) checkFrame(frame);
            yield frame;
        }
        if (left <= 0) return;
    }
}

/** A frame of the record names its event's cursor and type (api 1.11). */
function checkFrame(frame: Frame): void {
    const event = JSON.parse(frame.data!);
    assert.equal(frame.id, event.cursor);
    assert.equal(frame.event, event.type);
    checkEvent(event);
}

/** Events of a session's record, from its beginning or from after a cursor. */
export async function* events(client: Client, session: string, cursor?: string): AsyncGenerator<any> {
    const options = cursor === undefined ? {} : { query: `cursor=${encodeURIComponent(cursor)}` };
    for await (const frame of follow(client, session, options)) {
        if (frame.id !== undefined) yield JSON.parse(frame.data!);
    }
}

/** The events up to the first one that `last` accepts, which comes with them. */
export async function eventsUntil(
    client: Client,
    session: string,
    last: (event: any) => boolean,
    cursor?: string,
): Promise<any[]> {
    const found = [];
    for await (const event of events(client, session, cursor)) {
        found.push(event);
        if (last(event)) return found;
    }
    throw new Error(`the stream of ${session} ended after ${found.map((event) => event.type).join(', ')}`);
}
