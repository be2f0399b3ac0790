// What most tests begin with: a running server whose model is the fixture, clients, agents, sessions, turns.

import { after } from 'node:test';
import { Client, NEWEST_PROTOCOL, done } from './client.ts';
import { startServer } from './server.ts';
import type { Server } from './server.ts';
import { eventsUntil } from './sse.ts';

export type Model = 'fixture' | 'none';

/** A server for the tests of one file, and its clients. */
export class World {
    server!: Server;
    /** The application as itself. */
    app!: Client;
    management!: Client;
    /** Without a credential, and without a protocol. */
    nobody!: Client;

    async open(model: Model, variables: Record<string, string>): Promise<void> {
        this.server = await startServer(variables);
        this.app = this.clientWith(this.server.applicationKey);
        this.management = this.clientWith(this.server.managementKey);
        this.nobody = new Client(this.server.url, {});
        if (model === 'fixture') {
            done(await this.management.put('/v1/tenant/config/seed', { requestId: 'seed', fixtureModel: true }));
        }
    }

    clientWith(key: string, protocol: string = NEWEST_PROTOCOL): Client {
        return new Client(this.server.url, { authorization: `Bearer ${key}`, 'nylorun-protocol': protocol });
    }

    /** The application acting for a person. */
    person(subject: string, scopes: string = 'sessions:own agents:read'): Client {
        return this.app.with({ 'nylorun-subject': subject, 'nylorun-scopes': scopes });
    }
}

/** A world for the tests of one file; it is gone after them. */
export async function openWorld(
    model: Model = 'fixture',
    variables: Record<string, string> = {},
): Promise<World> {
    const world = new World();
    after(async () => {
        await world.server?.kill();
        world.server?.dispose();
    });
    await world.open(model, variables);
    return world;
}

let numbers = 0;

/** A name that no other test of this file uses. */
export function fresh(kind: string): string {
    return `${kind}-${++numbers}`;
}

/** A manifest of an agent without tools of its own. */
export function plainManifest(id: string): any {
    return { manifestSchemaVersion: 5, id, capabilities: [{ id: 'main', type: 'agent', instructions: ['Help.'] }] };
}

/** Saves an agent and answers its id. */
export async function newAgent(client: Client, manifest: any = plainManifest(fresh('agent'))): Promise<string> {
    const body = { requestId: 'r', manifest, implementationVersion: '1' };
    done(await client.put(`/v1/agents/${encodeURIComponent(manifest.id)}`, body));
    return manifest.id;
}

/** Opens a session of a new agent and answers its id. */
export async function newSession(client: Client, members: object = {}): Promise<string> {
    const id = fresh('session');
    const agentId = (members as { agentId?: string }).agentId ?? (await newAgent(client));
    const body = { requestId: 'r', agentId, ownerUserId: 'ann', ...members };
    done(await client.put(`/v1/sessions/${id}`, body));
    return id;
}

/** The body of a message. What is no text is a script of the fixture model. */
export function message(content: unknown, members: object = {}): any {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    return { type: 'message', requestId: fresh('request'), idempotencyKey: fresh('key'), content: text, ...members };
}

/** The body of a cancel. */
export function cancel(members: object = {}): any {
    return { type: 'cancel', requestId: fresh('request'), idempotencyKey: fresh('key'), ...members };
}

/** Sends a command that must be accepted; answers what it is answered. */
export async function command(client: Client, session: string, body: any): Promise<any> {
    return done(await client.post(`/v1/sessions/${encodeURIComponent(session)}/commands`, body));
}

const ENDS = new Set(['turn.completed', 'turn.failed', 'turn.cancelled']);

/** Whether a turn ends with this event. */
export function endsTurn(event: any): boolean {
    return ENDS.has(event.type);
}

/** Sends a message and waits for the end of its turn; answers the events, from the message on. */
export async function turn(client: Client, session: string, content: unknown, members: object = {}): Promise<any[]> {
    const head = await headOf(client, session);
    await command(client, session, message(content, members));
    return eventsUntil(client, session, endsTurn, head);
}

/** The cursor of the record's end; `undefined` when nothing happened yet. */
export async function headOf(client: Client, session: string): Promise<string | undefined> {
    return done(await client.get(`/v1/sessions/${encodeURIComponent(session)}/items`)).cursor ?? undefined;
}

/** The types of events, in order. */
export function typesOf(events: any[]): string[] {
    return events.map((event) => event.type);
}

/** The one event of this type. */
export function only(events: any[], type: string): any {
    const found = events.filter((event) => event.type === type);
    if (found.length !== 1) throw new Error(`${found.length} events ${type} among ${typesOf(events).join(', ')}`);
    return found[0];
}
