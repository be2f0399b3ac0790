//! A tool gate, what it calls, and what remembers its crossings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use nylorun_domain::id::{AgentId, EffectId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::tool::ToolOutcome;
use nylorun_gates::HttpToolGate;
use nylorun_gates::outbound::{Outbound, PrivateTargets};
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::crossings::{Crossed, Crossing, Crossings, CrossingsError};
use nylorun_ports::http_tools::{HttpToolAnswer, HttpToolCall, HttpTools};
use serde_json::{Value, json};

/// Crossings in memory. What a process leaves behind when it dies is what stands here.
#[derive(Default)]
pub(crate) struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    crossings: HashMap<EffectId, (String, Option<ToolOutcome>)>,
    refuses: Option<Crossed>,
    is_down: bool,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Answers every call so.
    pub(crate) fn refuse(&self, answer: Crossed) {
        self.state().refuses = Some(answer);
    }

    /// Fails everything from now on.
    pub(crate) fn go_down(&self) {
        self.state().is_down = true;
    }

    /// What is recorded of a call: whether it was begun, and its answer.
    pub(crate) fn of(&self, id: &str) -> Option<Option<ToolOutcome>> {
        self.state().crossings.get(&EffectId::from_trusted(id)).map(|(_, answer)| answer.clone())
    }
}

impl Crossings for Kept {
    fn begin<'a>(&'a self, crossing: &'a Crossing) -> BoxFuture<'a, Result<Crossed, CrossingsError>> {
        let mut state = self.state();
        let answer = match (state.is_down, &state.refuses, state.crossings.get(&crossing.effect_id)) {
            (true, _, _) => Err(CrossingsError("down".into())),
            (_, Some(refusal), _) => Ok(refusal.clone()),
            (_, _, Some((hash, _))) if *hash != crossing.request_hash => Ok(Crossed::OtherRequest),
            (_, _, Some((_, Some(answer)))) => Ok(Crossed::Answered(answer.clone())),
            (_, _, Some((_, None))) => Ok(Crossed::Open),
            (_, _, None) => {
                state.crossings.insert(crossing.effect_id.clone(), (crossing.request_hash.clone(), None));
                Ok(Crossed::Begun)
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn settle<'a>(
        &'a self,
        effect_id: &'a EffectId,
        answer: &'a ToolOutcome,
    ) -> BoxFuture<'a, Result<(), CrossingsError>> {
        let mut state = self.state();
        let result = if state.is_down { Err(CrossingsError("down".into())) } else { Ok(()) };
        if result.is_ok() {
            state.crossings.get_mut(effect_id).unwrap().1 = Some(answer.clone());
        }
        Box::pin(std::future::ready(result))
    }
}

pub(crate) fn gate(kept: &Arc<Kept>) -> HttpToolGate {
    gate_through(Outbound::new(PrivateTargets::Allow), kept)
}

pub(crate) fn gate_through(outbound: Outbound, kept: &Arc<Kept>) -> HttpToolGate {
    HttpToolGate::new(outbound, Arc::<Kept>::clone(kept))
}

/// A call with the id `e1` of the tool `order`, which stands at `url`.
pub(crate) fn call(url: &str) -> HttpToolCall {
    call_of(json!({"http": {"url": url}}))
}

/// A call of the tool `order` with these members.
pub(crate) fn call_of(members: Value) -> HttpToolCall {
    let mut tool = json!({"name": "order", "inputSchema": {"type": "object"}});
    tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let document = json!({
        "manifestSchemaVersion": 5,
        "id": "agent-1",
        "capabilities": [{"id": "c", "type": "agent", "tools": [tool]}],
    });
    let manifest = AgentManifest::check_saved(&Json::parse(&document.to_string()).unwrap()).unwrap();
    HttpToolCall {
        session_id: SessionId::from_trusted("session-1"),
        turn_id: TurnId::from_trusted("turn-1"),
        agent_id: AgentId::from_trusted("agent-1"),
        epoch: 1,
        effect_id: EffectId::from_trusted("e1"),
        request_hash: "hash".into(),
        manifest: Arc::new(manifest),
        tool_name: "order".into(),
        input: Json::from_trusted("{}"),
    }
}

/// What a new gate answers, with crossings of its own.
pub(crate) async fn answer(call: HttpToolCall) -> HttpToolAnswer {
    gate(&Arc::default()).call(call, Abort::never()).await
}

pub(crate) fn completed(output: &str) -> HttpToolAnswer {
    HttpToolAnswer::Done(ToolOutcome::Completed { output: Json::from_trusted(output) })
}

/// The code and the message of a failure.
pub(crate) fn failure(answer: HttpToolAnswer) -> (String, String) {
    match answer {
        HttpToolAnswer::Done(ToolOutcome::Failed { code, message }) => (code, message),
        other => panic!("{other:?}"),
    }
}
