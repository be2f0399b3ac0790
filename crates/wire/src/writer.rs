//! Prints JSON objects member by member, raw parts verbatim.

use nylorun_domain::json::{Json, Text, Value, quoted};

/// An object that is being printed.
pub(crate) struct Object<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Begins an object.
    pub(crate) fn open(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    fn name(&mut self, name: &str) {
        if !self.is_empty {
            self.out.push(',');
        }
        self.is_empty = false;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    /// A member that is a string.
    pub(crate) fn str(&mut self, name: &str, text: &str) {
        self.name(name);
        self.out.push_str(&quoted(text));
    }

    /// A member that is a string, or `null`.
    pub(crate) fn nullable(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => self.str(name, text),
            None => self.null(name),
        }
    }

    /// A string, left out when there is none.
    pub(crate) fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.str(name, text);
        }
    }

    /// A member that is a string, lone surrogates kept.
    pub(crate) fn text(&mut self, name: &str, text: &Text) {
        self.name(name);
        text.write_json(self.out);
    }

    /// A member that is a document, verbatim.
    pub(crate) fn json(&mut self, name: &str, json: &Json) {
        self.name(name);
        self.out.push_str(json.as_str());
    }

    /// A member that is a value.
    pub(crate) fn value(&mut self, name: &str, value: &Value) {
        self.name(name);
        value.write(self.out);
    }

    /// A member that prints itself.
    pub(crate) fn printed(&mut self, name: &str, print: impl FnOnce(&mut String)) {
        self.name(name);
        print(self.out);
    }

    /// A whole number.
    pub(crate) fn int(&mut self, name: &str, number: i64) {
        self.name(name);
        self.out.push_str(&number.to_string());
    }

    /// `true`, as a flag that is left out when it is not set.
    pub(crate) fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.name(name);
            self.out.push_str("true");
        }
    }

    /// `null`
    pub(crate) fn null(&mut self, name: &str) {
        self.name(name);
        self.out.push_str("null");
    }

    /// A nested object.
    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        let mut object = Object::open(self.out);
        write(&mut object);
        object.close();
    }

    /// An array of objects.
    pub(crate) fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Object<'_>, T),
    ) {
        self.name(name);
        self.out.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            let mut object = Object::open(self.out);
            write(&mut object, item);
            object.close();
        }
        self.out.push(']');
    }

    /// Ends the object.
    pub(crate) fn close(self) {
        self.out.push('}');
    }
}
