ALTER TABLE {table} RENAME TO {name}
