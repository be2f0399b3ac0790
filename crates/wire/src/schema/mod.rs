//! JSON schemas as constant data: the one source of validation, of the OpenAPI documents and of generated bad input.

pub mod answers;
pub mod bodies;
mod check;
mod format;
mod openapi;
mod sample;
pub mod sandbox;

pub use format::Format;
pub use sample::{BadSample, bad_samples, sample};

/// Largest whole number that every JSON reader holds exactly.
pub const MAX_SAFE: i64 = 9_007_199_254_740_991;

/// What a JSON value must be like.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    /// Any JSON.
    Any,
    /// `true` or `false`.
    Bool,
    /// This one boolean.
    Constant(Constant),
    /// A whole number from `min` to `max`.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A number, with or without decimals.
    Number(Least),
    /// A string; lengths are in UTF-16 units.
    Text {
        /// The fewest characters.
        min: usize,
        /// The most characters.
        max: usize,
        /// A grammar. Without one any text will do, lone surrogates included.
        format: Option<&'static Format>,
    },
    /// One of these words.
    Words(&'static [&'static str]),
    /// An array.
    Array {
        /// What its elements are.
        of: &'static Schema,
        /// The fewest elements.
        min: usize,
        /// The most elements.
        max: usize,
    },
    /// An object of any members.
    AnyObject,
    /// An agent's manifest, by the rules of its own (sandbox-and-definitions d1).
    AgentManifest,
    /// An object whose member names are free.
    Map(&'static Schema),
    /// An object of declared members.
    Object(&'static Shape),
    /// An object whose member `tag` says which shape it has; the shapes do not declare the tag.
    Tagged {
        /// The member.
        tag: &'static str,
        /// Its words, with the shape of each.
        cases: &'static [(&'static str, Shape)],
    },
    /// The first of these that claims the value judges it.
    FirstOf(&'static [Alternative]),
    /// `null`, or this.
    Nullable(&'static Schema),
}

/// How small a number may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Least {
    /// 0 or more.
    Zero,
    /// Above 0.
    AboveZero,
}

/// A boolean that stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// `true`
    True,
    /// `false`
    False,
}

impl Constant {
    /// The boolean.
    pub fn value(self) -> bool {
        match self {
            Self::True => true,
            Self::False => false,
        }
    }
}

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The declared members, in the order in which they are documented.
    pub members: &'static [Member],
    /// Groups of which exactly one member must be there.
    pub exactly_one: &'static [&'static [&'static str]],
    /// What becomes of other members.
    pub others: Others,
}

/// What becomes of members that a shape does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are refused.
    Refused,
    /// They are kept.
    Kept,
}

/// A declared member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub need: Need,
    /// What it must be like.
    pub schema: Schema,
}

/// Whether a member must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must.
    Required,
    /// It may be absent.
    Optional,
}

/// One of several forms of a value.
#[derive(Clone, Copy, Debug)]
pub struct Alternative {
    /// Which values it judges.
    pub claims: Claim,
    /// What they must be like.
    pub schema: Schema,
}

/// Which values an alternative judges.
#[derive(Clone, Copy, Debug)]
pub enum Claim {
    /// Booleans.
    Booleans,
    /// Strings.
    Strings,
    /// Objects that have this member.
    ObjectsWith(&'static str),
    /// Everything that no alternative before it claimed.
    TheRest,
}

/// A member that must be there.
pub const fn required(name: &'static str, schema: Schema) -> Member {
    Member { name, need: Need::Required, schema }
}

/// A member that may be absent.
pub const fn optional(name: &'static str, schema: Schema) -> Member {
    Member { name, need: Need::Optional, schema }
}

/// A strict shape of these members.
pub const fn strict(members: &'static [Member]) -> Shape {
    Shape { members, exactly_one: &[], others: Others::Refused }
}

/// The shape of an answer: readers must ignore members that they do not know.
pub const fn open(members: &'static [Member]) -> Shape {
    Shape { members, exactly_one: &[], others: Others::Kept }
}

/// An array of any length.
pub const fn list_of(of: &'static Schema) -> Schema {
    Schema::Array { of, min: 0, max: usize::MAX }
}

/// Content: at least one character, lone surrogates included.
pub const CONTENT: Schema = Schema::Text { min: 1, max: usize::MAX, format: None };
/// Any text of an answer.
pub const TEXT: Schema = Schema::Text { min: 0, max: usize::MAX, format: None };
/// Text that ends up in plain strings: no NUL, no lone surrogates.
pub const PLAIN: Schema = Schema::Text { min: 1, max: 65_536, format: Some(&format::PLAIN) };
/// The same, perhaps empty.
pub const OPTIONAL_PLAIN: Schema = Schema::Text { min: 0, max: 65_536, format: Some(&format::PLAIN) };
/// An id: 1 to 512 characters without control characters and lone surrogates.
pub const ID: Schema = Schema::Text { min: 1, max: nylorun_domain::id::MAX_ID_LEN, format: Some(&format::ID) };
/// An idempotency key: 1 to 256 characters.
pub const IDEMPOTENCY_KEY: Schema = Schema::Text { min: 1, max: 256, format: Some(&format::ID) };
/// A size of memory: `512MiB`.
pub const SIZE: Schema = formatted(&format::SIZE);
/// A duration: `15m`.
pub const DURATION: Schema = formatted(&format::DURATION);
/// The time that a pod has to stop: `10s`, at most 30 seconds.
pub const STOP_GRACE: Schema = formatted(&format::STOP_GRACE);
/// A host pattern: `api.example.com`, `*.example.com`.
pub const HOST_PATTERN: Schema = formatted(&format::HOST_PATTERN);
/// A provider's id.
pub const PROVIDER: Schema = formatted(&format::PROVIDER);
/// An `http` or `https` URL.
pub const HTTP_URL: Schema = formatted(&format::HTTP_URL);
/// The id of an environment.
pub const SANDBOX_ID: Schema = Schema::Text { min: 1, max: 200, format: Some(&format::SANDBOX_ID) };
/// The name of a definition file: `sha256:` and 64 hexadecimal digits.
pub const FILE_HASH: Schema = formatted(&format::FILE_HASH);
/// The name of a caller's key.
pub const KEY_ID: Schema = formatted(&format::KEY_ID);
/// A count.
pub const COUNT: Schema = Schema::Integer { min: 0, max: MAX_SAFE };

const fn formatted(format: &'static Format) -> Schema {
    Schema::Text { min: 1, max: 2048, format: Some(format) }
}
