//! What the model is asked with: instructions, tools and the conversation so far.

use std::sync::Arc;

use nylorun_domain::compaction::SUMMARY_HEADING;
use nylorun_domain::hash::{HexDigest, RunningHash, sha256_hex};
use nylorun_domain::json::{Json, Value};
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::model::{Prompt, PromptItem, ToolSpec, UserPart};
use nylorun_domain::transcript::{Entry, Input, Line, Shown};

use crate::{estimate, item_form};

/// Room for the form of a short item, in bytes.
const FORM: usize = 256;

/// The prompt as it grows, with a digest of it: a call's request hash costs what the call adds, not what the
/// conversation holds.
#[derive(Debug)]
pub(crate) struct Conversation {
    prompt: Prompt,
    frame_digest: String,
    /// Over the items' digests, in order.
    items_digest: RunningHash,
}

impl Conversation {
    /// The conversation of an agent with this history.
    pub(crate) fn new(manifest: &AgentManifest, transcript: &[Line]) -> Self {
        let capabilities = &manifest.capabilities;
        let instructions = capabilities.iter().flat_map(|capability| capability.instructions.iter().cloned());
        let tools = capabilities.iter().flat_map(|capability| &capability.tools).map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
        });
        let prompt = Prompt {
            instructions: instructions.collect(),
            items: Vec::with_capacity(transcript.len() + 2),
            tools: tools.collect(),
            output_schema: manifest.output_schema.clone(),
        };
        let frame_digest = digest(&frame_form(&prompt));
        let mut conversation = Self { prompt, frame_digest, items_digest: RunningHash::default() };
        conversation.replace(transcript);
        conversation
    }

    /// Begins the conversation anew with this history.
    pub(crate) fn replace<'a>(&mut self, transcript: impl IntoIterator<Item = &'a Line>) {
        self.prompt.items.clear();
        self.items_digest = RunningHash::default();
        transcript.into_iter().for_each(|line| self.push(line));
    }

    /// Estimated tokens of what stands in every prompt: instructions, tools and output schema.
    pub(crate) fn frame_tokens(&self) -> i64 {
        estimate::frame_tokens(&self.prompt)
    }

    /// Adds an entry of the transcript, when the model is shown it.
    pub(crate) fn push(&mut self, line: &Line) {
        if let Some(shown) = line.shown(show) {
            self.items_digest.update(shown.digest.as_bytes());
            self.prompt.items.push(Arc::clone(&shown.item));
        }
    }

    /// The prompt of the next call.
    pub(crate) fn prompt(&self) -> Prompt {
        self.prompt.clone()
    }

    /// What identifies the prompt: a digest of its frame and one of its items.
    pub(crate) fn digest(&self) -> Value {
        Value::object([
            ("frame", Value::from(self.frame_digest.as_str())),
            ("items", Value::from(self.items_digest.hex())),
        ])
    }
}

fn show(entry: &Entry) -> Option<Shown> {
    let item = prompt_item(entry)?;
    let mut form = String::with_capacity(FORM);
    item_form::write(&item, &mut form);
    Some(Shown { item: Arc::new(item), digest: HexDigest::of(form.as_bytes()) })
}

fn prompt_item(entry: &Entry) -> Option<PromptItem> {
    match entry {
        Entry::Input(Input::Content(text)) => Some(PromptItem::User(vec![text.clone().into()])),
        Entry::Input(Input::Data(data)) => {
            // Printed anew, so that it reads the same before and after the record kept it.
            Some(PromptItem::User(vec![data.value().to_json().as_str().into()]))
        }
        Entry::Input(Input::Parts(texts)) => {
            Some(PromptItem::User(texts.iter().cloned().map(UserPart::Text).collect()))
        }
        Entry::Candidate { candidate, .. } => Some(PromptItem::Assistant(Arc::clone(candidate))),
        Entry::ToolResults(results) => Some(PromptItem::ToolResults(results.clone())),
        Entry::Compaction(compaction) => {
            let summary = format!("{SUMMARY_HEADING}\n\n{}", compaction.summary.lossy());
            Some(PromptItem::User(vec![summary.into()]))
        }
        // The answer before it says the same.
        Entry::Final { .. } => None,
    }
}

fn digest(form: &Value) -> String {
    sha256_hex(form.canonical().as_bytes())
}

fn frame_form(prompt: &Prompt) -> Value {
    let instructions = prompt.instructions.iter().map(|text| Value::from(text.as_str()));
    let tools = prompt.tools.iter().map(|tool| {
        Value::object([
            ("name", Value::from(tool.name.as_str())),
            ("description", tool.description.as_deref().map_or(Value::Null, Value::from)),
            ("inputSchema", tool.input_schema.value()),
        ])
    });
    Value::object([
        ("instructions", Value::Array(instructions.collect())),
        ("tools", Value::Array(tools.collect())),
        ("outputSchema", prompt.output_schema.as_ref().map_or(Value::Null, Json::value)),
    ])
}
