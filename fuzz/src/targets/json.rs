//! Documents: JSON itself, manifests, bodies, and what the record holds.

use nylorun_domain::effect::EffectKind;
use nylorun_domain::id::TurnId;
use nylorun_domain::json::{Document, Json, Node, Value, element_of, member_of, parse};
use nylorun_domain::manifest::{AgentManifest, variant_of};
use nylorun_domain::transcript::{Fold, Folding};
use nylorun_wire::body::Body;
use nylorun_wire::candidate::Unreadable;
use nylorun_wire::checkpoint;
use nylorun_wire::command::Command;
use nylorun_wire::event::{read_folding, read_input};
use nylorun_wire::outcome;
use nylorun_wire::schema::bodies::{COMMAND, OPEN_SESSION, SAVE_AGENT};
use nylorun_wire::session::OpenSession;
use nylorun_wire::transcript::{entry_from_node, entry_len, entry_to_value};

pub(super) fn json(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (value, kept) = match (parse(text), Json::parse(text)) {
        (Ok(value), Ok(kept)) => (value, kept),
        (Err(one), Err(other)) => return assert_eq!(one, other),
        (one, other) => panic!("one reader takes it and the other does not: {one:?} {other:?}"),
    };
    assert_eq!(kept.as_str(), text.trim_matches([' ', '\t', '\n', '\r']), "it is kept as it was written");
    assert_eq!(kept.value(), value);
    let Ok(document) = Document::parse(text) else { panic!("it was parsed before") };
    assert_agreement(document.root(), &value);
    let printed = value.to_json();
    assert_eq!(parse(printed.as_str()).as_ref(), Ok(&value));
    let canonical = value.canonical();
    assert_eq!(kept.canonical(), canonical);
    assert_eq!(parse(&canonical).map(|again| again.canonical()).as_ref(), Ok(&canonical), "a fixed point");
    parts(printed.as_str(), &value);
}

/// A part is found where the parser finds it.
fn parts(text: &str, value: &Value) {
    for (at, item) in value.as_array().unwrap_or_default().iter().enumerate().take(50) {
        assert_eq!(element_of(text, at), Some(item.to_json().as_str()));
    }
    for (name, member) in value.as_object().unwrap_or_default().iter().take(50) {
        if let Some(name) = name.as_str() {
            assert_eq!(member_of(text, name), Some(member.to_json().as_str()));
        }
    }
}

/// What is accepted keeps its hash in canonical form; what is refused is refused with reasons that can be printed.
pub(super) fn manifest(input: &[u8]) {
    let Some(document) = std::str::from_utf8(input).ok().and_then(|text| Json::parse(text).ok()) else { return };
    match AgentManifest::check_saved(&document) {
        Ok(manifest) => {
            let canonical = Json::parse(&document.canonical());
            let again = canonical.map(|canonical| AgentManifest::check_saved(&canonical).map(|again| again.hash));
            assert_eq!(again, Ok(Ok(manifest.hash.clone())));
            let pinned = AgentManifest::read_pinned(&manifest.document).map(|pinned| pinned.hash);
            assert_eq!(pinned, Ok(manifest.hash.clone()), "what is stored is read back");
            assert!(variant_of(&manifest, &document).is_ok(), "a manifest is a variant of itself");
        }
        Err(problems) => assert!(!problems.is_empty() && parse(&problems.to_json_text()).is_ok()),
    }
    let _ = AgentManifest::read_pinned(&document);
}

/// What its schema accepts is read; the order of members never makes it another request.
pub(super) fn bodies(input: &[u8]) {
    let Some(body) = std::str::from_utf8(input).ok().and_then(|text| Body::parse(text).ok()) else { return };
    for schema in [COMMAND, OPEN_SESSION, SAVE_AGENT] {
        if let Err(problems) = schema.check(body.value()) {
            assert!(!problems.is_empty() && parse(&problems.to_json_text()).is_ok());
        }
    }
    let canonical = Body::new(Json::from_trusted(body.raw().canonical()));
    assert_eq!(canonical.identity(&["requestId"]), body.identity(&["requestId"]));
    let refused = |body: &Body| Command::read(body).is_err();
    if COMMAND.check(body.value()).is_ok() {
        assert_eq!(refused(&canonical), refused(&body));
    } else {
        let _ = refused(&body);
    }
    match OpenSession::read(&body) {
        Ok(_) => {}
        Err(problems) => assert!(!problems.is_empty()),
    }
}

/// What is read from the record is printed and read again as the same.
pub(super) fn record(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(document) = Document::parse(text) else { return };
    let root = document.root();
    let _ = read_input(text);
    let mut entries = vec![root];
    entries.extend(root.elements().into_iter().flatten());
    let payload = root.get("payload").and_then(|payload| payload.get("entries")).and_then(Node::elements);
    entries.extend(payload.into_iter().flatten());
    for entry in entries.into_iter().filter_map(|entry| entry_from_node(entry).ok()) {
        let printed = entry_to_value(&entry).to_json();
        assert_eq!(entry_len(&entry), printed.as_str().encode_utf16().count());
        assert_eq!(reread(&printed, entry_from_node), Ok(entry));
    }
    let turn = || TurnId::from_trusted("t");
    if let Ok(read) = checkpoint::from_node(turn(), 1, root) {
        let printed = checkpoint::to_value(&read).to_json();
        assert_eq!(reread(&printed, |node| checkpoint::from_node(turn(), 1, node)), Ok(read));
    }
    for kind in [EffectKind::Model, EffectKind::Tool, EffectKind::Steer] {
        if let Ok(read) = outcome::from_node(kind, root) {
            let printed = outcome::to_value(&read).to_json();
            assert_eq!(reread(&printed, |node| outcome::from_node(kind, node)), Ok(read));
        }
    }
    let _ = read_folding("turn.failed", text);
    if let Ok(Some(Folding::Edit(turn, edit))) = read_folding("transcript.updated", text) {
        let entries = edit.entries.len();
        let fits = edit.keep == 0 && edit.length == entries;
        let mut fold = Fold::default();
        assert_eq!(fold.take(Folding::Edit(turn.clone(), edit)).is_ok(), fits);
        assert_eq!(fold.clone().into_lines().len(), if fits { entries } else { 0 });
        assert_eq!(fold.take(Folding::Undo(turn)), Ok(()));
        assert!(fold.into_lines().is_empty(), "the turn is undone");
    }
}

fn reread<T>(printed: &Json, read: impl Fn(Node<'_>) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
    let Ok(document) = Document::parse(printed.as_str()) else { panic!("what is printed is JSON") };
    read(document.root())
}

/// A document read in its place says the same as its value.
fn assert_agreement(node: Node<'_>, value: &Value) {
    assert_eq!(node.to_value(), *value);
    assert_eq!((node.as_text().as_ref(), node.as_bool()), (value.as_text(), value.as_bool()));
    assert_eq!(node.as_str().as_deref(), value.as_str());
    assert!(value.as_i64().is_none_or(|number| node.as_i64() == Some(number)), "{}", node.as_written());
    assert_eq!(node.elements().is_some(), value.as_array().is_some());
    for (node, value) in node.elements().into_iter().flatten().zip(value.as_array().unwrap_or_default()) {
        assert_agreement(node, value);
    }
    for (name, value) in value.as_object().unwrap_or_default() {
        if let Some(name) = name.as_str() {
            let Some(node) = node.get(name) else { panic!("the member is there") };
            assert_agreement(node, value);
        }
    }
}
