// The validator itself: each keyword accepts and refuses.

import assert from 'node:assert/strict';
import test from 'node:test';
import { describe, validate } from './support/validator.ts';
import type { Schema } from './support/validator.ts';

const DOCUMENT = { components: { schemas: { Name: { type: 'string', minLength: 1 }, 'a/b~c': { const: 1 } } } };

function said(schema: Schema, value: unknown): string {
    return describe(validate(schema, value, DOCUMENT));
}

/** Of each row: a schema, values that fit it, values that do not. */
const ROWS: [Schema, unknown[], unknown[]][] = [
    [true, [null, 1, {}], []],
    [false, [], [null, 1, {}]],
    [{ type: 'string' }, ['', 'a'], [1, null, [], {}, true]],
    [{ type: 'integer' }, [0, -1, 1e21, 1.0], [1.5, '1', null]],
    [{ type: 'number' }, [0, 1.5], ['1', null, true]],
    [{ type: 'boolean' }, [true, false], [0, 'true', null]],
    [{ type: 'null' }, [null], [0, '', false, undefined]],
    [{ type: 'array' }, [[], [1]], [{}, 'a']],
    [{ type: 'object' }, [{}, { a: 1 }], [[], null, 'a']],
    [{ type: ['string', 'null'] }, ['a', null], [1, {}]],
    [{ const: { a: [1] } }, [{ a: [1] }], [{ a: [2] }, { a: [1], b: 1 }, { b: [1] }, null]],
    [{ enum: ['a', 1, null] }, ['a', 1, null], ['b', '1', false]],
    [{ minLength: 2, maxLength: 3 }, ['ab', 'abc', '😀😀', 7], ['a', 'abcd']],
    [{ pattern: '^a+$' }, ['a', 'aa', 7], ['', 'b', 'ab']],
    [{ minimum: 1, maximum: 3 }, [1, 2.5, 3, 'x'], [0, 4]],
    [{ exclusiveMinimum: 0 }, [1e-9, 2], [0, -1]],
    [{ items: { type: 'integer' } }, [[], [1, 2], 'x'], [[1, 'a']]],
    [{ minItems: 1, maxItems: 2 }, [[1], [1, 2], 'x'], [[], [1, 2, 3]]],
    [{ required: ['a'] }, [{ a: undefined }, { a: 1, b: 2 }, 'x'], [{}, { b: 1 }, Object.create({ a: 1 })]],
    [{ properties: { a: { type: 'string' } } }, [{}, { a: 'x' }, { b: 1 }], [{ a: 1 }]],
    [{ properties: { a: true }, additionalProperties: false }, [{}, { a: 1 }], [{ b: 1 }, { a: 1, b: 1 }]],
    [{ additionalProperties: { type: 'integer' } }, [{}, { a: 1 }], [{ a: 'x' }]],
    [{ allOf: [{ type: 'string' }, { minLength: 2 }] }, ['ab'], ['a', 1]],
    [{ anyOf: [{ type: 'string' }, { const: 1 }] }, ['a', 1], [2, null]],
    [{ oneOf: [{ type: 'integer' }, { minimum: 5 }] }, [1, 5.5], [7, 1.5]],
    [{ $ref: '#/components/schemas/Name' }, ['a'], ['', 1]],
    [{ $ref: '#/components/schemas/a~1b~0c' }, [1], [2]],
    [{ description: 'x', title: 'y', discriminator: {} }, [1, null], []],
];

for (const [schema, fits, differs] of ROWS) {
    test(`the validator judges ${JSON.stringify(schema)}`, () => {
        for (const value of fits) assert.equal(said(schema, value), '', JSON.stringify(value));
        for (const value of differs) assert.notEqual(said(schema, value), '', JSON.stringify(value));
    });
}

test('the validator names the place of every problem at once', () => {
    const schema = { properties: { a: { items: { required: ['id'] } }, b: { type: 'string' } }, required: ['c'] };
    const problems = validate(schema, { a: [{ id: 1 }, {}], b: 2 });
    assert.deepEqual(
        problems.map((problem) => problem.path),
        ['a.1.id', 'b', 'c'],
    );
});

test('the validator refuses keywords that it does not know, and references that lead nowhere', () => {
    assert.throws(() => validate({ multipleOf: 2 }, 4), /multipleOf/);
    assert.throws(() => validate({ $ref: '#/components/schemas/Gone' }, 4, DOCUMENT), /Gone/);
    assert.throws(() => validate({ $ref: 'https://example.com/x' }, 4, DOCUMENT), /example/);
});
