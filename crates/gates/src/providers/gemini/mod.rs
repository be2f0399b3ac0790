//! Gemini's `streamGenerateContent`, Google's API.

mod answer;
mod request;

pub(crate) use answer::Reader;
pub(crate) use request::request;

/// The provider's id.
pub(crate) const PROVIDER: &str = "google";

/// The member of a part, and of a signature, that only the provider can read. It belongs to the part that it came
/// with, and must be sent back with that part.
const SIGNATURE: &str = "thoughtSignature";
/// The member of a signature that says to which part it belongs, where that is not the part after it.
const CAME_WITH: &str = "cameWith";
/// It came with a thought, whose text stands beside it.
const THOUGHT: &str = "thought";
/// It came with an empty text, as at the end of an answer.
const EMPTY_TEXT: &str = "emptyText";
