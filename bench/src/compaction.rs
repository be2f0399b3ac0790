//! Compaction in the engine alone: its own time, without any model call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nylorun_domain::effect::{EffectOutcome, EffectRequest};
use nylorun_domain::id::{AgentId, InvocationId, SessionId, TurnId};
use nylorun_domain::json::Json;
use nylorun_domain::manifest::AgentManifest;
use nylorun_domain::model::{Candidate, FinishReason, ModelOutcome, ModelRef, OutputPart, Window};
use nylorun_domain::segment::SegmentInput;
use nylorun_domain::transcript::{Entry, Input, Line};
use nylorun_engine::{Run, Start};

use crate::Failure;
use crate::report::{Report, Verdict, ms, percentile};

const TURNS: i64 = 200;
/// Of about 1,000 tokens each.
const CHARACTERS_OF_A_TURN: usize = 4_000;
const WINDOW: Window = Window { context: 200_000, output: 64_000 };
const LIMIT_MS: f64 = 50.0;

/// Measures it.
pub(crate) fn measure(report: &mut Report) -> Result<(), Failure> {
    let document = Json::from_trusted(r#"{"manifestSchemaVersion":5,"id":"a","capabilities":[]}"#);
    let manifest = AgentManifest::check_saved(&document).map_err(|problems| problems.to_json_text())?;
    let manifest = Arc::new(manifest);
    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(compact(&manifest, Arc::new(transcript()))?);
    }
    let p50 = percentile(&mut times, 0.5);
    let figure = format!("p50 {}, most {}", ms(p50), ms(percentile(&mut times, 1.0)));
    let what = "compaction of 200,000 tokens, the model's time left out";
    report.row("none", what, figure, "< 50 ms", Verdict::at_most(p50.as_secs_f64(), LIMIT_MS / 1e3));
    Ok(())
}

/// As it is after a restart: nothing of it was shown to a model yet.
fn transcript() -> Vec<Line> {
    let turn = |number: i64| {
        let text = "word ".repeat(CHARACTERS_OF_A_TURN / 10);
        let answer = Candidate { size: Some((number + 1) * 1_000), ..candidate(&text) };
        let invocation_id = InvocationId::from_trusted(format!("i{number}"));
        [Entry::Input(Input::Content(text.into())), Entry::Candidate { invocation_id, candidate: answer.into() }]
    };
    (0..TURNS).flat_map(turn).map(Line::from).collect()
}

fn candidate(text: &str) -> Candidate {
    Candidate {
        parts: vec![OutputPart::Text(text.into())],
        finish: FinishReason::Stop,
        usage: None,
        size: None,
        model: ModelRef { provider: "p".to_owned(), model: "m".to_owned() },
        window: Some(WINDOW),
    }
}

/// From the start of the run until it asks the model with the compacted conversation.
fn compact(manifest: &Arc<AgentManifest>, transcript: Arc<Vec<Line>>) -> Result<Duration, Failure> {
    let start = Start {
        session_id: SessionId::from_trusted("s"),
        agent_id: AgentId::from_trusted("a"),
        turn_id: TurnId::from_trusted("t"),
        segment: 0,
        manifest: Arc::clone(manifest),
        input: SegmentInput::Message(Input::Content("hi".into())),
        transcript,
    };
    let summary = "summary ".repeat(1_000);
    let begun = Instant::now();
    let mut run = Run::new(start);
    let mut summaries = 0;
    loop {
        let effect = run.wants().pop().ok_or("the run wants nothing")?;
        match effect.request {
            EffectRequest::Summary(_) => {
                summaries += 1;
                let outcome = EffectOutcome::Model(ModelOutcome::Completed(candidate(&summary)));
                run.resolve(&effect.id, outcome)?;
            }
            _ if summaries > 0 => return Ok(begun.elapsed()),
            _ => return Err("the conversation was not compacted".into()),
        }
    }
}
