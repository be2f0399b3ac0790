//! Reading a caller's document strictly: every problem at once, each with its path (decisions, Validation
//! answers).
//!
//! [`check`], or [`Document::check`] for a body, walks a document with a reader. A reader gets a [`Place`], a value and
//! where it stands, and gives what it read, or `None` after reporting what is wrong there. An [`Object`] reads members
//! by name and reports those that nobody asked for. So that all problems are found, read every member first and put the
//! parts together afterwards:
//!
//! ```
//! use nylorun_domain::check::{Place, Problems, TextRule, check};
//! use nylorun_domain::id::AgentId;
//! use nylorun_domain::json::{Value, parse};
//!
//! struct Limits { agent: AgentId, cpus: Option<u32>, labels: Option<Vec<String>> }
//!
//! fn limits(place: Place<'_>) -> Option<Limits> {
//!     let object = place.object()?;
//!     let agent = object.required("agentId", |place| place.parsed(AgentId::parse));
//!     let cpus = object.optional("cpus", |place| place.integer(1..=64));
//!     let labels = object.optional("labels", |place| place.list_of(1..=32, |item| item.string(TextRule::NON_EMPTY)));
//!     object.finish();
//!     Some(Limits { agent: agent?, cpus, labels })
//! }
//!
//! let body = parse(r#"{"agentId":"", "cpus":65, "labels":["a", 1], "color":"red"}"#).unwrap();
//! let problems: Problems = check(&body, limits).err().unwrap();
//! assert_eq!(problems.iter().map(|problem| problem.to_string()).collect::<Vec<_>>(), [
//!     "agentId: must not be empty",
//!     "cpus: Too big: expected number to be <=64",
//!     "labels.1: Invalid input: expected string, received number",
//!     "Unrecognized key: \"color\"",
//! ]);
//! ```

mod document;
mod object;
mod path;
mod place;
mod problem;
mod text_rule;

pub use document::{Document, Found};
pub use object::Object;
pub use path::{Path, Step};
pub use place::{Place, check, check_at};
pub use problem::{Complaint, MAX_PROBLEMS, Problem, ProblemCode, Problems};
pub use text_rule::TextRule;
