//! A runtime that remembers what was committed, in one line a commit.

use std::collections::HashMap;
use std::sync::Mutex;

use nylorun_domain::effect::{Effect, EffectOutcome, Intent, IntentRequest};
use nylorun_domain::id::EffectId;
use nylorun_domain::model::ModelOutcome;
use nylorun_domain::tool::ToolOutcome;
use nylorun_ports::BoxFuture;
use nylorun_ports::models::Delta;
use nylorun_ports::run::{
    CoreError, EffectReport, EffectResult, IntentAnswer, Next, RecordedOutcome, RunCore, TurnEnd,
};
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct FakeCore {
    state: Mutex<State>,
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    commits: Vec<(Vec<EffectReport>, Next)>,
    intents: HashMap<EffectId, Intent>,
    /// Answers by tool name, instead of the usual one.
    answers: HashMap<String, IntentAnswer>,
    /// What the commit of this line fails with, once.
    error: Option<(String, CoreError)>,
    deltas: Vec<String>,
}

impl FakeCore {
    /// Answers intents of this tool so.
    pub(crate) fn answer(&self, tool: &str, answer: IntentAnswer) {
        self.state.lock().unwrap().answers.insert(tool.to_owned(), answer);
    }

    /// Fails the commit of this line.
    pub(crate) fn fail(&self, line: &str, error: CoreError) {
        self.state.lock().unwrap().error = Some((line.to_owned(), error));
    }

    /// What was committed: `reports -> next`, one line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.state.lock().unwrap().lines.clone()
    }

    pub(crate) fn commits(&self) -> Vec<(Vec<EffectReport>, Next)> {
        self.state.lock().unwrap().commits.clone()
    }

    pub(crate) fn deltas(&self) -> Vec<String> {
        self.state.lock().unwrap().deltas.clone()
    }

    /// Waits until a commit says so.
    pub(crate) async fn committed(&self, part: &str) {
        let says_so = |_: &usize| self.state.lock().unwrap().lines.iter().any(|line| line.contains(part));
        self.count.subscribe().wait_for(says_so).await.unwrap();
    }

    /// What the journal would ship with a replay.
    pub(crate) fn recorded(&self) -> Vec<RecordedOutcome> {
        let state = self.state.lock().unwrap();
        let reports = state.commits.iter().flat_map(|(reports, _)| reports);
        let recorded = reports.filter_map(|report| match &report.result {
            EffectResult::Value(outcome) => Some(RecordedOutcome {
                effect_id: report.effect_id.clone(),
                request_hash: state.intents[&report.effect_id].request_hash.clone(),
                outcome: outcome.clone(),
            }),
            EffectResult::Lost { .. } => None,
        });
        recorded.collect()
    }
}

impl State {
    fn commit(&mut self, reports: Vec<EffectReport>, next: Next) -> Result<Vec<IntentAnswer>, CoreError> {
        let line = self.line(&reports, &next);
        self.lines.push(line.clone());
        if let Some((_, error)) = self.error.take_if(|(at, _)| *at == line) {
            return Err(error);
        }
        let answers = match &next {
            Next::Intents(effects) => effects.iter().map(|effect| self.intend(effect)).collect(),
            Next::Nothing | Next::Output(_) => Vec::new(),
        };
        self.commits.push((reports, next));
        Ok(answers)
    }

    fn intend(&mut self, effect: &Intent) -> IntentAnswer {
        let first = self.intents.insert(effect.id.clone(), effect.clone()).is_none();
        assert!(first, "the intent of {} was committed twice", effect.id);
        match &effect.request {
            IntentRequest::Model | IntentRequest::Summary => {
                self.answers.get("model").cloned().unwrap_or(IntentAnswer::Execute)
            }
            IntentRequest::Tool(request) => match (self.answers.get(&request.tool_name), request.refusal()) {
                (Some(answer), _) => answer.clone(),
                (None, Some(refusal)) => IntentAnswer::Completed(EffectOutcome::Tool(refusal)),
                (None, None) => IntentAnswer::Execute,
            },
        }
    }

    fn line(&self, reports: &[EffectReport], next: &Next) -> String {
        let reports: Vec<_> = reports.iter().map(|report| self.report(report)).collect();
        let next = match next {
            Next::Nothing => "nothing".to_owned(),
            Next::Intents(effects) => effects.iter().map(name).collect::<Vec<_>>().join(" + "),
            Next::Output(output) => match &output.end {
                TurnEnd::Completed { output } => format!("completed {output}"),
                TurnEnd::Failed { code, .. } => format!("failed {code}"),
                TurnEnd::Uncertain => "uncertain".to_owned(),
                TurnEnd::Yielded { .. } => "yielded".to_owned(),
                TurnEnd::Paused { interactions, .. } => {
                    let tools: Vec<_> = interactions.iter().map(|asked| asked.tool_name.as_str()).collect();
                    format!("paused for {}", tools.join(" + "))
                }
            },
        };
        format!("{} -> {next}", reports.join(" + ")).trim_start().to_owned()
    }

    fn report(&self, report: &EffectReport) -> String {
        let effect = self.intents.get(&report.effect_id).expect("an outcome has an intent");
        let outcome = match &report.result {
            EffectResult::Lost { message } => format!("lost ({message})"),
            EffectResult::Value(EffectOutcome::Model(ModelOutcome::Completed(_))) => "answered".to_owned(),
            EffectResult::Value(EffectOutcome::Model(ModelOutcome::Failed(failure))) => {
                failure.code.as_str().to_owned()
            }
            EffectResult::Value(EffectOutcome::Tool(ToolOutcome::Completed { output })) => output.as_str().to_owned(),
            EffectResult::Value(EffectOutcome::Tool(ToolOutcome::Failed { code, .. })) => code.clone(),
            EffectResult::Value(EffectOutcome::Asked { kind, .. }) => format!("asks {kind}"),
            EffectResult::Value(EffectOutcome::Summary { .. }) => "summarized".to_owned(),
            EffectResult::Value(EffectOutcome::Steer { .. }) => panic!("nothing reports what it read"),
        };
        format!("{} {outcome}", name(effect))
    }
}

fn name(intent: &Intent) -> String {
    match &intent.request {
        IntentRequest::Model => "model".to_owned(),
        IntentRequest::Summary => "summary".to_owned(),
        IntentRequest::Tool(request) => request.tool_name.clone(),
    }
}

impl RunCore for FakeCore {
    fn commit(&self, reports: Vec<EffectReport>, next: Next) -> BoxFuture<'_, Result<Vec<IntentAnswer>, CoreError>> {
        Box::pin(async move {
            // Lets others run, as a commit to a disk does.
            tokio::task::yield_now().await;
            let answer = self.state.lock().unwrap().commit(reports, next);
            self.count.send_modify(|count| *count += 1);
            answer
        })
    }

    fn delta(&self, effect: &Effect, delta: Delta) {
        let line = format!("{} {}.{} {}", name(&effect.intent()), delta.attempt, delta.index, delta.text);
        self.state.lock().unwrap().deltas.push(line);
    }
}
