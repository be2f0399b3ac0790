// A small JSON Schema validator: the keywords that the OpenAPI documents use, and no others. An unknown keyword is an
// error of the caller, so that nothing of a document is silently left unchecked.

export type Schema = boolean | { readonly [keyword: string]: any };

export interface Problem {
    /** Where in the value, as `a.b.0`; empty for the value itself. */
    readonly path: string;
    readonly message: string;
}

/** Keywords that say nothing about a value. */
const ANNOTATIONS = new Set([
    'description',
    'title',
    'default',
    'example',
    'examples',
    'deprecated',
    'discriminator',
]);

/** All problems of `value`; `document` is where `$ref` points into. */
export function validate(schema: Schema, value: unknown, document: object = {}, path = ''): Problem[] {
    if (schema === true) return [];
    if (schema === false) return [{ path, message: 'nothing is allowed here' }];
    return Object.entries(schema).flatMap(([keyword, operand]) => {
        if (ANNOTATIONS.has(keyword)) return [];
        const check = KEYWORDS[keyword];
        if (check === undefined) throw new Error(`the schema keyword ${keyword} is not known to this validator`);
        return check({ operand, schema, value, document, path });
    });
}

interface Check {
    readonly operand: any;
    readonly schema: { readonly [keyword: string]: any };
    readonly value: any;
    readonly document: object;
    readonly path: string;
}

const KEYWORDS: Record<string, (check: Check) => Problem[]> = {
    $ref: ({ operand, value, document, path }) => validate(resolve(operand, document), value, document, path),
    type: ({ operand, value, path }) => {
        const allowed: string[] = [operand].flat();
        const fits = allowed.some(
            (type) => typeOf(value) === type || (type === 'number' && typeOf(value) === 'integer'),
        );
        return fits ? [] : [{ path, message: `expected ${allowed.join(' or ')}, got ${typeOf(value)}` }];
    },
    const: ({ operand, value, path }) => unless(same(operand, value), path, `expected ${JSON.stringify(operand)}`),
    enum: ({ operand, value, path }) => {
        const fits = operand.some((choice: unknown) => same(choice, value));
        return unless(fits, path, `expected one of ${JSON.stringify(operand)}, got ${JSON.stringify(value)}`);
    },

    minLength: ({ operand, value, path }) =>
        unless(lengthOf(value, operand) >= operand, path, `shorter than ${operand}`),
    maxLength: ({ operand, value, path }) =>
        unless(lengthOf(value, operand) <= operand, path, `longer than ${operand}`),
    pattern: ({ operand, value, path }) => {
        const fits = typeof value !== 'string' || new RegExp(operand, 'u').test(value);
        return unless(fits, path, `does not match ${operand}`);
    },
    minimum: ({ operand, value, path }) =>
        unless(!(isNumber(value) && value < operand), path, `less than ${operand}`),
    exclusiveMinimum: ({ operand, value, path }) =>
        unless(!(isNumber(value) && value <= operand), path, `not more than ${operand}`),
    maximum: ({ operand, value, path }) =>
        unless(!(isNumber(value) && value > operand), path, `more than ${operand}`),

    items: ({ operand, value, document, path }) =>
        listOf(value).flatMap((item, index) => validate(operand, item, document, join(path, index))),
    minItems: ({ operand, value, path }) =>
        unless(!Array.isArray(value) || value.length >= operand, path, `fewer than ${operand} items`),
    maxItems: ({ operand, value, path }) =>
        unless(listOf(value).length <= operand, path, `more than ${operand} items`),

    required: ({ operand, value, path }) =>
        operand.flatMap((name: string) =>
            unless(!isObject(value) || Object.hasOwn(value, name), join(path, name), 'is missing'),
        ),
    properties: ({ operand, value, document, path }) =>
        Object.entries<Schema>(operand).flatMap(([name, schema]) =>
            isObject(value) && Object.hasOwn(value, name)
                ? validate(schema, value[name], document, join(path, name))
                : [],
        ),
    additionalProperties: ({ operand, schema, value, document, path }) =>
        Object.keys(isObject(value) ? value : {})
            .filter((name) => !Object.hasOwn(schema.properties ?? {}, name))
            .flatMap((name) =>
                operand === false
                    ? [{ path: join(path, name), message: 'is not a known member' }]
                    : validate(operand, value[name], document, join(path, name)),
            ),

    allOf: ({ operand, value, document, path }) =>
        operand.flatMap((schema: Schema) => validate(schema, value, document, path)),
    anyOf: (check) => unless(fitting(check).length > 0, check.path, `fits none of anyOf: ${reasons(check)}`),
    oneOf: (check) => {
        const count = fitting(check).length;
        if (count === 1) return [];
        const message = count === 0 ? `fits none of oneOf: ${reasons(check)}` : `fits ${count} of oneOf`;
        return [{ path: check.path, message }];
    },
};

function fitting({ operand, value, document, path }: Check): Schema[] {
    return operand.filter((schema: Schema) => validate(schema, value, document, path).length === 0);
}

function reasons({ operand, value, document, path }: Check): string {
    return operand.map((schema: Schema) => describe(validate(schema, value, document, path))).join(' | ');
}

/** One line for people. */
export function describe(problems: Problem[]): string {
    return problems.map(({ path, message }) => `${path || '(the value)'} ${message}`).join('; ');
}

function unless(fits: boolean, path: string, message: string): Problem[] {
    return fits ? [] : [{ path, message }];
}

function resolve(pointer: string, document: object): Schema {
    const steps = pointer
        .split('/')
        .slice(1)
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const found = steps.reduce<any>((at, step) => (isObject(at) ? at[step] : undefined), document);
    if (!pointer.startsWith('#/') || found === undefined) throw new Error(`the reference ${pointer} leads nowhere`);
    return found;
}

function typeOf(value: unknown): string {
    if (value === null) return 'null';
    if (Array.isArray(value)) return 'array';
    if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
    return typeof value;
}

/** Deep equality of JSON values; the order of members does not count. */
function same(a: unknown, b: unknown): boolean {
    if (Array.isArray(a) && Array.isArray(b))
        return a.length === b.length && a.every((item, at) => same(item, b[at]));
    if (isObject(a) && isObject(b)) {
        const names = Object.keys(a);
        const alike = names.length === Object.keys(b).length;
        return alike && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
    }
    return a === b;
}

/** Length of a text in code points, as JSON Schema counts; `otherwise` for anything else, which passes. */
function lengthOf(value: unknown, otherwise: number): number {
    return typeof value === 'string' ? [...value].length : otherwise;
}

function listOf(value: unknown): unknown[] {
    return Array.isArray(value) ? value : [];
}

function isNumber(value: unknown): value is number {
    return typeof value === 'number';
}

function isObject(value: unknown): value is Record<string, any> {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function join(path: string, step: string | number): string {
    return path === '' ? String(step) : `${path}.${step}`;
}
