// Payloads of events by type (api 4.2). Members beyond these are allowed: readers ignore what they do not know.

import { describe, validate } from './validator.ts';
import type { Schema } from './validator.ts';

const TEXT: Schema = { type: 'string' };
const NAME: Schema = { type: 'string', minLength: 1 };
const FLAG: Schema = { type: 'boolean' };
const COUNT: Schema = { type: 'integer', minimum: 0 };

/** An object with these members; those whose name ends in `?` may be left out. */
function object(members: Record<string, Schema>): Schema {
    const names = Object.keys(members);
    const properties = Object.fromEntries(names.map((name) => [name.replace('?', ''), members[name]]));
    return { type: 'object', required: names.filter((name) => !name.endsWith('?')), properties };
}

const COMMAND = { requestId: NAME, idempotencyKey: NAME };
const FAILURE = object({ code: NAME, message: TEXT });

/** Exactly one of these members. */
function exactlyOne(...names: string[]): Schema {
    return { oneOf: names.map((name) => ({ required: [name] })) };
}

export const PAYLOADS: Record<string, Schema> = {
    'command.message': {
        allOf: [
            object({
                ...COMMAND,
                type: { const: 'message' },
                'content?': TEXT,
                'data?': true,
                'parts?': { type: 'array' },
            }),
            exactlyOne('content', 'data', 'parts'),
        ],
    },
    'message.queued': {
        allOf: [
            object({
                ...COMMAND,
                messageId: NAME,
                mode: { enum: ['queue', 'steer'] },
                'content?': TEXT,
                'data?': true,
                'parts?': { type: 'array' },
            }),
            exactlyOne('content', 'data', 'parts'),
        ],
    },
    'message.steered': object({ ...COMMAND, messageId: NAME }),
    'message.removed': object({ messageId: NAME, reason: { enum: ['removed', 'cancelled'] } }),
    'command.approve': object({ ...COMMAND, type: { const: 'approve' }, interactionId: NAME, approved: FLAG }),
    'command.respond': object({ ...COMMAND, type: { const: 'respond' }, interactionId: NAME, value: true }),
    'turn.paused': object({
        interactions: {
            type: 'array',
            minItems: 1,
            items: object({
                invocationId: NAME,
                'callId?': NAME,
                'toolName?': NAME,
                'status?': NAME,
                interaction: object({ id: NAME, kind: NAME, 'prompt?': TEXT }),
            }),
        },
    }),
    'context.compacted': object({
        'invocationId?': NAME,
        trigger: { enum: ['threshold', 'overflow'] },
        tokensBefore: COUNT,
        tokensAfter: COUNT,
    }),
    'turn.completed': object({ output: true }),
    'turn.failed': object({ error: FAILURE }),
    'turn.cancelled': object({ 'reason?': TEXT }),
    'message.assistant': object({
        invocationId: NAME,
        text: TEXT,
        'model?': object({ provider: NAME, model: NAME }),
        'finishReason?': { enum: ['stop', 'length', 'tool-calls', 'content-filter', 'other'] },
        'usage?': { type: 'object', additionalProperties: { type: 'number' } },
        toolCalls: { type: 'array', items: object({ callId: NAME, name: NAME, input: true }) },
    }),
    'model.failed': object({ 'invocationId?': NAME, code: NAME, message: TEXT, retryable: FLAG }),
    'tool.completed': {
        allOf: [
            object({
                callId: NAME,
                invocationId: NAME,
                capabilityId: TEXT,
                toolName: NAME,
                'output?': true,
                'error?': object({ code: NAME, message: TEXT, 'retryable?': FLAG }),
            }),
            exactlyOne('output', 'error'),
        ],
    },
    'effect.uncertain': object({
        effectId: NAME,
        'message?': TEXT,
        'invocationId?': NAME,
        'callId?': NAME,
        'capabilityId?': TEXT,
        'toolName?': NAME,
        'command?': { type: 'string', maxLength: 500 },
        'path?': TEXT,
    }),
    'effect.settled': object({
        ...COMMAND,
        effectId: NAME,
        outcome: { allOf: [{ type: 'object' }, exactlyOne('value', 'error', 'retry')] },
    }),
    'sandbox.state': object({
        state: { enum: ['creating', 'running', 'stopped'] },
        backend: NAME,
        'isolation?': { enum: ['process', 'container'] },
        'image?': TEXT,
        'network?': TEXT,
        'reattach?': FLAG,
        'lost?': FLAG,
        'note?': TEXT,
        'error?': TEXT,
    }),
    'sandbox.exec': object({
        tool: { enum: ['bash', 'read', 'write', 'edit', 'grep', 'glob'] },
        'command?': { type: 'string', maxLength: 500 },
        'path?': TEXT,
        'exitCode?': { type: 'integer' },
        'killed?': FLAG,
        outcome: { enum: ['completed', 'failed', 'uncertain'] },
        'code?': NAME,
        durationMs: COUNT,
    }),
};

/** What is wrong with an event's payload; a type without a schema here is a problem too. */
export function payloadProblems(event: { type: string; payload: unknown }): string {
    const schema = PAYLOADS[event.type];
    return schema === undefined ? `no payload is known for ${event.type}` : describe(validate(schema, event.payload));
}
