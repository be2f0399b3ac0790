//! What effects gave: as it is recorded, reported, and answered (engine a.3, a.4).

use nylorun_domain::effect::{EffectKind, EffectOutcome};
use nylorun_domain::id::EffectId;
use nylorun_domain::segment::RecordedOutcome;

use super::effect::RequestHash;
use super::shape::{Fields, JsonObject, Malformed, Member as _, Set, Shape, document};
use crate::outcome;
use crate::writer::Object;

/// What an effect gave, as the API's `value`: `{effect: KIND, outcome}`, the outcome as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gave(pub EffectOutcome);

impl Shape for Gave {
    fn write(&self, out: &mut String) {
        let kind = match &self.0 {
            EffectOutcome::Model(_) | EffectOutcome::Summary { .. } => EffectKind::Model,
            EffectOutcome::Tool(_) | EffectOutcome::Asked { .. } => EffectKind::Tool,
            EffectOutcome::Steer { .. } => EffectKind::Steer,
        };
        let mut object = Object::open(out);
        kind.put(&mut object, "effect");
        object.value("outcome", &outcome::to_value(&self.0));
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let kind: EffectKind = fields.get("effect")?;
        let outcome: JsonObject = fields.get("outcome")?;
        fields.end()?;
        let outcome = outcome::from_node(kind, document(outcome.0.as_str())?.root());
        outcome.map(Self).map_err(|error| Malformed::new(error.to_string()).within("outcome"))
    }
}

/// An `EffectOutcome` of the API: `{value, statePatch?}`. This build keeps no state entries: a patch must be empty.
impl Shape for EffectOutcome {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        Gave(self.clone()).put(&mut object, "value");
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let Gave(outcome) = fields.get("value")?;
        if let Some(patch) = fields.take("statePatch") {
            Fields::of(patch).and_then(Fields::end).map_err(|error| error.within("statePatch"))?;
        }
        fields.end().map(|()| outcome)
    }
}

/// `{effectId, requestHash, outcome}`
impl Shape for RecordedOutcome {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        self.effect_id.put(&mut object, "effectId");
        object.str("requestHash", &self.request_hash);
        self.outcome.put(&mut object, "outcome");
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let (effect_id, hash): (_, RequestHash) = (fields.get("effectId")?, fields.get("requestHash")?);
        let outcome = fields.get("outcome")?;
        fields.end().map(|()| Self { effect_id, request_hash: hash.as_str().to_owned(), outcome })
    }
}

/// The answer to `effect.intent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntentReply {
    /// `{status: "completed", outcome}`: it has its outcome. Of a model call that was not begun, the outcome is of kind
    /// `steer`: the turn reads these messages first, and asks anew.
    Completed(Box<EffectOutcome>),
    /// `{status: "pending"}`: linked work goes on.
    Pending,
    /// `{status: "uncertain"}`: it may or may not have happened.
    Uncertain,
    /// `{status: "execute", rejoin?: true}`: run it now.
    Execute(Rejoin),
}

/// Whether an effect that is to run may be running at its gate already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// It is begun.
    No,
    /// It may be: the gate is asked for what it holds.
    Yes,
}

impl Shape for IntentReply {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        match self {
            Self::Completed(outcome) => {
                object.str("status", "completed");
                outcome.put(&mut object, "outcome");
            }
            Self::Pending => object.str("status", "pending"),
            Self::Uncertain => object.str("status", "uncertain"),
            Self::Execute(rejoin) => {
                object.str("status", "execute");
                object.flag("rejoin", *rejoin == Rejoin::Yes);
            }
        }
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let read = match fields.get::<String>("status")?.as_str() {
            "completed" => Self::Completed(Box::new(fields.get("outcome")?)),
            "pending" => Self::Pending,
            "uncertain" => Self::Uncertain,
            "execute" => Self::Execute(fields.get::<Option<Set>>("rejoin")?.map_or(Rejoin::No, |Set| Rejoin::Yes)),
            word => return Err(Malformed::new(format!("may not be {word:?}")).within("status")),
        };
        fields.end().map(|()| read)
    }
}

/// `effect.outcome`: what became of an effect that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeReported {
    /// The run.
    pub run_id: String,
    /// The effect.
    pub effect_id: EffectId,
    /// What became of it.
    pub became: Became,
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// `value`: it gave this.
    Value(EffectOutcome),
    /// `error`: its answer was lost, and what is known.
    Error(String),
}

impl Shape for OutcomeReported {
    fn write(&self, out: &mut String) {
        let mut object = Object::open(out);
        object.str("runId", &self.run_id);
        self.effect_id.put(&mut object, "effectId");
        match &self.became {
            Became::Value(outcome) => Gave(outcome.clone()).put(&mut object, "value"),
            Became::Error(message) => object.str("error", message),
        }
        object.close();
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        let mut fields = Fields::of(text)?;
        let (run_id, effect_id) = (fields.get("runId")?, fields.get("effectId")?);
        let became = match (fields.get::<Option<Gave>>("value")?, fields.get::<Option<String>>("error")?) {
            (Some(Gave(outcome)), None) => Became::Value(outcome),
            (None, Some(message)) => Became::Error(message),
            (Some(_), Some(_)) | (None, None) => return Err(Malformed::new("must have either value or error")),
        };
        fields.end().map(|()| Self { run_id, effect_id, became })
    }
}

/// The answer to `effect.outcome`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeReply {
    /// `{status: "completed", outcome}`: recorded.
    Completed(Box<EffectOutcome>),
    /// `{status: "uncertain"}`: recorded as lost.
    Uncertain,
}

impl Shape for OutcomeReply {
    fn write(&self, out: &mut String) {
        match self {
            Self::Completed(outcome) => IntentReply::Completed(outcome.clone()).write(out),
            Self::Uncertain => IntentReply::Uncertain.write(out),
        }
    }

    fn read(text: &str) -> Result<Self, Malformed> {
        match IntentReply::read(text)? {
            IntentReply::Completed(outcome) => Ok(Self::Completed(outcome)),
            IntentReply::Uncertain => Ok(Self::Uncertain),
            IntentReply::Pending | IntentReply::Execute(_) => {
                Err(Malformed::new("may be completed or uncertain").within("status"))
            }
        }
    }
}
