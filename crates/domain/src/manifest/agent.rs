//! An agent's document as a whole.

use super::{AgentManifest, Capability, ManifestVersion, capability, manifest_hash, names::Names};
use crate::check::{Object, Place, ProblemCode, TextRule};
use crate::id::AgentId;
use crate::json::Value;

/// What a part is read for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) stage: Stage,
    pub(super) depth: Depth,
    pub(super) version: ManifestVersion,
}

/// Where the document comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// From a caller, to be saved.
    Saved,
    /// From the store: a session's copy, with what the runtime added.
    Pinned,
}

/// Whose document it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The agent's own.
    Root,
    /// That of an agent used as a tool, which has no agents of its own (I44).
    Delegate,
}

impl Context {
    /// A whole definition that a caller saves. The version is set once it is read.
    pub(super) const SAVED: Self = Self { stage: Stage::Saved, depth: Depth::Root, version: ManifestVersion::V6 };
    /// A whole session copy.
    pub(super) const PINNED: Self = Self { stage: Stage::Pinned, ..Self::SAVED };

    /// The same for an agent used as a tool.
    pub(super) fn delegate(self) -> Self {
        Self { depth: Depth::Delegate, ..self }
    }
}

/// Reads an agent's manifest.
pub(super) fn read(place: Place<'_>, context: Context) -> Option<AgentManifest> {
    let object = place.object()?;
    if is_flow(&object) {
        return None;
    }
    let version = match read_version(&object) {
        Version::Current(version) => version,
        // The rest cannot be judged by the rules of a version that it does not follow.
        Version::Unsupported => return None,
        Version::Missing => context.version,
    };
    let context = Context { version, ..context };
    let id = object.required("id", |place| place.parsed(AgentId::parse));
    let name = object.optional_string("name", TextRule::NON_EMPTY);
    let description = object.optional("description", read_content);
    let metadata = object.optional("metadata", Place::object_json);
    let output_schema = object.optional("outputSchema", Place::object_json);
    let capabilities = object.required("capabilities", |place| read_capabilities(place, context));
    object.optional("runtime", |place| {
        place.object()?.finish();
        Some(())
    });
    object.refuse("functions", "`functions` is reserved: a manifest holds no code. Use HTTP tools or MCP servers");
    object.refuse("model", "`model` is no part of a manifest any more: the tenant's settings choose the model");
    object.refuse("schemaVersion", "`schemaVersion` is no part of a manifest any more: use `manifestSchemaVersion`");
    object.finish();
    let document = place.value();
    Some(AgentManifest {
        document: document.to_json(),
        hash: manifest_hash(document),
        version,
        id: id?,
        name,
        description,
        metadata,
        output_schema,
        capabilities: capabilities?,
    })
}

/// A text that people or models read; lone surrogates become U+FFFD in the copy that is read from the document.
pub(super) fn read_content(place: Place<'_>) -> Option<String> {
    place.text(TextRule::ANY).map(|text| text.lossy().into_owned())
}

/// Whether this is a flow, which is reported. Any other `kind` is an unknown member.
fn is_flow(object: &Object<'_>) -> bool {
    if object.place().value().get("kind").and_then(Value::as_str) != Some("workflow") {
        return false;
    }
    object.refuse("kind", "Flows (`kind: \"workflow\"`) are not available yet");
    true
}

enum Version {
    Current(ManifestVersion),
    Unsupported,
    Missing,
}

fn read_version(object: &Object<'_>) -> Version {
    let place = object.required("manifestSchemaVersion", Some);
    let Some(place) = place else { return Version::Missing };
    let message = match place.value().as_i64() {
        Some(5) => return Version::Current(ManifestVersion::V5),
        Some(6) => return Version::Current(ManifestVersion::V6),
        Some(old @ (3 | 4)) => {
            format!("Manifest version {old} is no longer supported: rebuild the agent with a current SDK")
        }
        Some(_) | None => "Unsupported manifest version: expected 5 or 6".to_owned(),
    };
    place.problem(ProblemCode::InvalidValue, message);
    Version::Unsupported
}

fn read_capabilities(place: Place<'_>, context: Context) -> Option<Vec<Capability>> {
    let mut names = Names::default();
    place.list(|item| capability::read(item, context, &mut names))
}

/// Whether two documents mean the same.
pub(super) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.map(Value::canonical) == b.map(Value::canonical)
}
