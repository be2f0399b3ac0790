//! Integration tests of the store, in one binary.

mod db_migrate;
mod db_sqlite;
mod db_support;
mod db_write;
