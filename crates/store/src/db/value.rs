//! The values that go into statements and come out of rows: only kinds that both engines keep alike.

use std::sync::Arc;

use super::error::DbError;

/// One value. A column is TEXT, BIGINT, or BLOB (BYTEA on PostgreSQL), with or without NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Val {
    /// SQL NULL.
    Null,
    /// A 64-bit integer; times are milliseconds since 1970, flags are 0 and 1.
    Int(i64),
    /// Text without NUL characters (PostgreSQL has none; both engines refuse them alike).
    Text(Arc<str>),
    /// Bytes.
    Blob(Arc<[u8]>),
}

impl Val {
    /// The kind in a word, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Int(_) => "an integer",
            Self::Text(_) => "text",
            Self::Blob(_) => "bytes",
        }
    }
}

impl From<&str> for Val {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Val {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&String> for Val {
    fn from(text: &String) -> Self {
        Self::Text(text.as_str().into())
    }
}

impl From<Arc<str>> for Val {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Val {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Val {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<Vec<u8>> for Val {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes.into())
    }
}

impl From<&[u8]> for Val {
    fn from(bytes: &[u8]) -> Self {
        Self::Blob(bytes.into())
    }
}

impl<T: Into<Val>> From<Option<T>> for Val {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement, each converted with [`Val::from`]: `params![id, revision, None::<i64>]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { ::std::vec![$($crate::db::Val::from($value)),*] };
}

/// The names of a result's columns, shared by its rows.
pub(crate) type Columns = Arc<[Box<str>]>;

/// One row of an answer. Getters take the column's position in the SELECT list, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    columns: Columns,
    values: Vec<Val>,
}

impl Row {
    pub(crate) fn new(columns: Columns, values: Vec<Val>) -> Self {
        Self { columns, values }
    }

    /// Text; NULL or another kind is an error that names the column.
    pub fn text(&self, index: usize) -> Result<&str, DbError> {
        self.opt_text(index)?.ok_or_else(|| self.mismatch(index, "text"))
    }

    /// Text to keep, without a copy.
    pub fn text_arc(&self, index: usize) -> Result<Arc<str>, DbError> {
        self.opt_text_arc(index)?.ok_or_else(|| self.mismatch(index, "text"))
    }

    /// Text or NULL.
    pub fn opt_text(&self, index: usize) -> Result<Option<&str>, DbError> {
        match self.value(index, "text")? {
            Val::Null => Ok(None),
            Val::Text(text) => Ok(Some(text)),
            Val::Int(_) | Val::Blob(_) => Err(self.mismatch(index, "text")),
        }
    }

    /// Text to keep, or NULL.
    pub fn opt_text_arc(&self, index: usize) -> Result<Option<Arc<str>>, DbError> {
        match self.value(index, "text")? {
            Val::Null => Ok(None),
            Val::Text(text) => Ok(Some(Arc::clone(text))),
            Val::Int(_) | Val::Blob(_) => Err(self.mismatch(index, "text")),
        }
    }

    /// An integer; NULL or another kind is an error that names the column.
    pub fn int(&self, index: usize) -> Result<i64, DbError> {
        self.opt_int(index)?.ok_or_else(|| self.mismatch(index, "an integer"))
    }

    /// An integer or NULL.
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, DbError> {
        match self.value(index, "an integer")? {
            Val::Null => Ok(None),
            Val::Int(number) => Ok(Some(*number)),
            Val::Text(_) | Val::Blob(_) => Err(self.mismatch(index, "an integer")),
        }
    }

    /// Bytes; NULL or another kind is an error that names the column.
    pub fn blob(&self, index: usize) -> Result<&[u8], DbError> {
        self.opt_blob(index)?.ok_or_else(|| self.mismatch(index, "bytes"))
    }

    /// Bytes or NULL.
    pub fn opt_blob(&self, index: usize) -> Result<Option<&[u8]>, DbError> {
        match self.value(index, "bytes")? {
            Val::Null => Ok(None),
            Val::Blob(bytes) => Ok(Some(bytes)),
            Val::Text(_) | Val::Int(_) => Err(self.mismatch(index, "bytes")),
        }
    }

    fn value(&self, index: usize, wanted: &'static str) -> Result<&Val, DbError> {
        self.values.get(index).ok_or_else(|| self.mismatch(index, wanted))
    }

    fn mismatch(&self, index: usize, wanted: &'static str) -> DbError {
        let column = self.columns.get(index).map_or_else(|| format!("number {index}"), |name| name.to_string());
        DbError::Column { column, wanted, found: self.values.get(index).map_or("missing", Val::kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let columns: Columns = ["id".into(), "head".into(), "body".into(), "gone".into()].into();
        Row::new(columns, params!["s1", 7i64, b"\x00\xff".as_slice(), None::<i64>])
    }

    #[test]
    fn getters_give_what_is_there() {
        let row = row();
        assert_eq!(row.text(0), Ok("s1"));
        assert_eq!(row.text_arc(0), Ok("s1".into()));
        assert_eq!(row.int(1), Ok(7));
        assert_eq!(row.blob(2), Ok(b"\x00\xff".as_slice()));
        assert_eq!((row.opt_text(3), row.opt_int(3), row.opt_blob(3)), (Ok(None), Ok(None), Ok(None)));
    }

    #[test]
    fn a_wrong_kind_names_the_column() {
        let error = |column: &str, wanted, found| Err(DbError::Column { column: column.into(), wanted, found });
        assert_eq!(row().int(0), error("id", "an integer", "text"));
        assert_eq!(row().int(3), error("gone", "an integer", "null"));
        assert_eq!(row().int(4), error("number 4", "an integer", "missing"));
    }
}
