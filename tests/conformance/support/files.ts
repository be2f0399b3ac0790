// Files of the repository that the suite reads.

import { readFileSync } from 'node:fs';

const ROOT = new URL('../../../', import.meta.url);

/** The text of a file, by its path from the repository's root. */
export function repositoryFile(path: string): string {
    return readFileSync(new URL(path, ROOT), 'utf8');
}
