//! The model's history: what happened, in the order in which the model is shown it (engine b.6).

use crate::id::InvocationId;
use crate::json::{Json, Text};
use crate::model::{Candidate, ToolResult};

/// One entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// What began a turn.
    Input(Input),
    /// A model's answer.
    Candidate {
        /// The call that gave it.
        invocation_id: InvocationId,
        /// The answer.
        candidate: Candidate,
    },
    /// The results of a step's tool calls, in the model's order.
    ToolResults(Vec<ToolResult>),
    /// The turn's output.
    Final {
        /// Text as a JSON string, or a document when the agent has an output schema.
        output: Json,
    },
}

/// What a message holds (api 2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// `content`
    Content(Text),
    /// `data`: any JSON.
    Data(Json),
    /// `parts`: texts (files come with artifacts).
    Parts(Vec<Text>),
}

/// One edit of a transcript (engine a.6): cut to `keep` entries, then add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// How many entries stay.
    pub keep: usize,
    /// What is added after them.
    pub entries: Vec<Entry>,
    /// How many entries there are then.
    pub length: usize,
}
