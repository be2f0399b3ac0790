// An identity provider: keys of every kind that is taken, their key set over HTTP, tokens.

import { generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Algorithm = 'RS256' | 'ES256' | 'EdDSA';

/** A key that signs tokens. */
export class SigningKey {
    readonly kid: string;
    readonly algorithm: Algorithm;
    readonly #private: KeyObject;
    readonly #public: KeyObject;

    constructor(kid: string, algorithm: Algorithm) {
        this.kid = kid;
        this.algorithm = algorithm;
        const pair = {
            RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
            ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
            EdDSA: () => generateKeyPairSync('ed25519'),
        }[algorithm]();
        this.#private = pair.privateKey;
        this.#public = pair.publicKey;
    }

    get jwk(): object {
        return { ...this.#public.export({ format: 'jwk' }), kid: this.kid, use: 'sig', alg: this.algorithm };
    }

    get pem(): string {
        return this.#public.export({ type: 'spki', format: 'pem' }).toString();
    }

    /** A token with these claims; `header` is added to the usual one. */
    token(claims: object, header: object = {}): string {
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
        const message = `${part({ alg: this.algorithm, typ: 'JWT', kid: this.kid, ...header })}.${part(claims)}`;
        const key = { key: this.#private, dsaEncoding: 'ieee-p1363' as const };
        const digest = this.algorithm === 'EdDSA' ? null : 'sha256';
        return `${message}.${sign(digest, Buffer.from(message), key).toString('base64url')}`;
    }
}

/** A key set over HTTP. */
export class KeySetServer {
    keys: SigningKey[];
    asked = 0;
    readonly #server: Server;

    constructor(keys: SigningKey[]) {
        this.keys = keys;
        this.#server = createServer((_, response) => {
            this.asked += 1;
            response.setHeader('content-type', 'application/json');
            response.end(JSON.stringify({ keys: this.keys.map((key) => key.jwk) }));
        });
    }

    async listen(): Promise<string> {
        await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
        return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/keys`;
    }

    close(): void {
        this.#server.close();
        this.#server.closeAllConnections();
    }
}

/** Seconds since 1970, so many from now. */
export function inSeconds(seconds: number): number {
    return Math.floor(Date.now() / 1000) + seconds;
}
