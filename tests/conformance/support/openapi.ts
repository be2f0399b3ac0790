// The two OpenAPI documents: which operation a request is, and whether an answer is as the document says.

import { repositoryFile } from './files.ts';
import { describe, validate } from './validator.ts';
import type { Schema } from './validator.ts';

export interface Operation {
    /** As `GET /v1/sessions/{id}`. */
    readonly name: string;
    readonly document: any;
    readonly description: any;
}

const METHODS = ['get', 'put', 'post', 'delete', 'head', 'patch'];

/** Refusals that any request may get before its operation begins, so that no operation names them (api 1.1). */
const ANYWHERE = new Set([
    '400 subject_invalid',
    // A malformed path, or an id in it that is too long or holds control characters.
    '400 request_rejected',
    '403 origin_rejected',
    '404 not_found',
    '421 host_rejected',
    '500 internal_error',
    // The database does not answer.
    '503 request_rejected',
]);

export const DOCUMENTS = ['runtime', 'management'].map((name) => JSON.parse(repositoryFile(`openapi/${name}.json`)));

/** Every operation of both documents; one that both have stands once. */
export const OPERATIONS: ReadonlyMap<string, Operation> = new Map(
    DOCUMENTS.flatMap((document) =>
        Object.entries<any>(document.paths).flatMap(([path, item]) =>
            METHODS.filter((method) => item[method] !== undefined).map((method) => {
                const name = `${method.toUpperCase()} ${path}`;
                return [name, { name, document, description: item[method] }] as const;
            }),
        ),
    ),
);

/** The operation of a request to `path`, which may have a query. */
export function operationOf(method: string, path: string): Operation | undefined {
    const segments = path.split('?')[0]!.split('/');
    const fits = (name: string) => {
        const [verb, template] = name.split(' ') as [string, string];
        const wanted = template.split('/');
        const alike = (step: string, at: number) =>
            step.startsWith('{') ? segments[at] !== '' : step === segments[at];
        return verb === method && wanted.length === segments.length && wanted.every(alike);
    };
    return [...OPERATIONS.values()].find((operation) => fits(operation.name));
}

/** What is wrong with a JSON answer to this operation; empty when nothing is. */
export function answerProblems(operation: Operation, status: number, body: unknown): string {
    const response = operation.description.responses[status];
    const code = (body as { code?: string } | undefined)?.code;
    if (response === undefined) {
        if (ANYWHERE.has(`${status} ${code}`)) return rejectionProblems(operation, body);
        return `the document has no answer ${status} (${code}) for this operation`;
    }
    if (operation.name.startsWith('HEAD ')) return body === undefined ? '' : 'an answer to HEAD has no body';
    const schema: Schema = response.content['application/json'].schema;
    return describe(validate(schema, body, operation.document));
}

/** What is wrong with an error body. */
function rejectionProblems(operation: Operation, body: unknown): string {
    return describe(validate({ $ref: '#/components/schemas/Rejection' }, body, operation.document));
}

/** What is wrong with an event of the stream. */
export function eventProblems(event: unknown): string {
    const follow = OPERATIONS.get('GET /v1/sessions/{id}/events')!;
    const schema = follow.description.responses[200].content['text/event-stream'].itemSchema;
    return describe(validate(schema, event, follow.document));
}

/** What the document has against a request's body that the server took. */
export function bodyProblems(operation: Operation, body: unknown): string {
    const described = operation.description.requestBody;
    if (described === undefined) return body === undefined ? '' : 'the document has no body for this operation';
    if (body === undefined) return described.required ? 'the document requires a body' : '';
    return describe(validate(described.content['application/json'].schema, body, operation.document));
}
