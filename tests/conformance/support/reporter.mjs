// Prints what the runner needs, one JSON document a line: `{name, outcome, todo?, error?}`.

export default async function* report(source) {
    for await (const { type, data } of source) {
        if (type !== 'test:pass' && type !== 'test:fail') continue;
        const error = data.details.error?.cause ?? data.details.error;
        const shown = error === undefined ? undefined : String(error.stack ?? error);
        const outcome = type === 'test:pass' ? 'passed' : 'failed';
        yield `${JSON.stringify({ name: data.name, outcome, todo: data.todo, error: shown })}\n`;
    }
}
