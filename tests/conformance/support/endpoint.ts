// An endpoint for HTTP tools: it keeps what it is sent, and can hold its answers.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

export interface Received {
    readonly method: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
}

/** An endpoint that answers 201 with `{"id": 7}`, until the test file is over. */
export class Endpoint {
    readonly received: Received[] = [];
    url!: string;
    #open: Promise<void> = Promise.resolve();
    #reopen = (): void => {};
    #arrived: (() => void)[] = [];

    /** Answers wait from now on, until `open()`. */
    close(): void {
        this.#open = new Promise((resolve) => {
            this.#reopen = resolve;
        });
    }

    open(): void {
        this.#reopen();
    }

    /** Waits until this many requests came. */
    async receivedAtLeast(count: number): Promise<void> {
        while (this.received.length < count) await new Promise<void>((resolve) => this.#arrived.push(resolve));
    }

    async listen(): Promise<void> {
        const server = createServer(async (request, response) => {
            const pieces = await request.toArray();
            const body = Buffer.concat(pieces).toString();
            this.received.push({ method: request.method!, headers: request.headers, body });
            for (const wake of this.#arrived.splice(0)) wake();
            await this.#open;
            response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":7}');
        });
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        after(() => {
            this.open();
            server.closeAllConnections();
            server.close();
        });
        this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }
}

/** An endpoint that listens. */
export async function newEndpoint(): Promise<Endpoint> {
    const endpoint = new Endpoint();
    await endpoint.listen();
    return endpoint;
}
