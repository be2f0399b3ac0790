//! Streams of providers.

use std::sync::LazyLock;

use nylorun_domain::model::OutputPart;
use nylorun_gates::catalogue::Catalogue;
use nylorun_gates::recorded::{Recorded, read_stream};

use super::cuts;

static CATALOGUE: LazyLock<Option<Catalogue>> = LazyLock::new(|| Catalogue::load(None).ok());

/// One provider of each protocol.
const PROVIDERS: [&str; 4] = ["openrouter", "openai", "anthropic", "google"];

/// A cut of the stream means nothing, and what was passed on while it came is the answer's text.
pub(super) fn providers(input: &[u8]) {
    let Some(catalogue) = &*CATALOGUE else { panic!("the built-in catalogue is one") };
    for provider in PROVIDERS {
        let Some(whole) = read_stream(provider, catalogue, [input]) else { panic!("{provider} is known") };
        for chunks in cuts(input) {
            assert_eq!(read_stream(provider, catalogue, chunks).as_ref(), Some(&whole), "{provider}");
        }
        if let Ok(texts) = texts(&whole) {
            assert_eq!(texts, whole.deltas, "{provider}");
        }
    }
}

fn texts(recorded: &Recorded) -> Result<String, &String> {
    let (parts, _) = recorded.answer.as_ref()?;
    let texts = parts.iter().filter_map(|part| match part {
        OutputPart::Text(text) => Some(text.lossy()),
        OutputPart::Reasoning { .. } | OutputPart::ToolCall(_) => None,
    });
    Ok(texts.collect())
}
