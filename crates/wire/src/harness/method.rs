//! The methods of both directions, each with its parameters and its result (engine a.4).

use super::effect::IntentRequested;
use super::event::EventReported;
use super::hello::{Hello, Welcome};
use super::lease::{CancelRun, Lease, Leased, Release, Renew, Renewed};
use super::outcome::{IntentReply, OutcomeReply, OutcomeReported};
use super::output::{OutputReply, RunOutput};
use super::session::{DefinitionBytes, DefinitionFile, DiscoveredTools, SessionMcp};
use super::shape::{Malformed, Nothing, Shape, words};
use super::transcript::{Transcript, TranscriptRead};
use super::workspace::{
    WorkspaceAnswer, WorkspaceCall, WorkspaceReading, WorkspaceRecords, WorkspaceRemove, WorkspaceReport,
    WorkspaceSweep,
};

/// A request that always goes by one method.
pub trait Call: Shape {
    /// The method.
    const METHOD: &'static str;
    /// What it is answered with.
    type Reply: Shape;
}

macro_rules! calls {
    ($($params:ty = $method:literal -> $reply:ty;)+) => {$(
        impl Call for $params {
            const METHOD: &'static str = $method;
            type Reply = $reply;
        }
    )+};
}

calls! {
    Hello = "hello" -> Welcome;
    Lease = "lease" -> Leased;
    Renew = "lease.renew" -> Renewed;
    Release = "lease.release" -> Nothing;
    IntentRequested = "effect.intent" -> IntentReply;
    OutcomeReported = "effect.outcome" -> OutcomeReply;
    TranscriptRead = "transcript.read" -> Transcript;
    EventReported = "event" -> Nothing;
    SessionMcp = "session.mcp" -> DiscoveredTools;
    DefinitionFile = "definition.file" -> DefinitionBytes;
    WorkspaceReading = "workspace.read" -> WorkspaceAnswer;
    WorkspaceSweep = "workspace.sweep" -> WorkspaceRecords;
    WorkspaceRemove = "workspace.remove" -> Nothing;
}

words! {
    /// By which method a run's output comes.
    OutputMethod {
        /// The turn is done.
        Completed = "turn.completed",
        /// Calls wait for people.
        Paused = "turn.paused",
        /// Effects are open, or uncertain.
        Waiting = "turn.waiting",
        /// The turn failed, or was cancelled.
        Failed = "turn.failed",
        /// The segment ended and the turn goes on.
        Checkpoint = "checkpoint",
    }
}

/// What a harness asks of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreRequest {
    /// `hello`
    Hello(Hello),
    /// `lease`
    Lease(Lease),
    /// `lease.renew`
    Renew(Renew),
    /// `lease.release`
    Release(Release),
    /// `effect.intent`
    Intent(Box<IntentRequested>),
    /// `effect.outcome`
    Outcome(Box<OutcomeReported>),
    /// `transcript.read`
    TranscriptRead(TranscriptRead),
    /// `event`
    Event(Box<EventReported>),
    /// `session.mcp`
    SessionMcp(Box<SessionMcp>),
    /// `definition.file`
    DefinitionFile(DefinitionFile),
    /// `turn.completed`, `turn.paused`, `turn.waiting`, `turn.failed` or `checkpoint`
    Output(OutputMethod, Box<RunOutput>),
}

impl CoreRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// There is no such method, or its parameters have another form.
    pub fn read(method: &str, params: &str) -> Result<Self, Malformed> {
        if let Some(output) = OutputMethod::from_wire(method) {
            return RunOutput::read(params).map(|run| Self::Output(output, Box::new(run)));
        }
        match method {
            Hello::METHOD => Hello::read(params).map(Self::Hello),
            Lease::METHOD => Lease::read(params).map(Self::Lease),
            Renew::METHOD => Renew::read(params).map(Self::Renew),
            Release::METHOD => Release::read(params).map(Self::Release),
            IntentRequested::METHOD => IntentRequested::read(params).map(|one| Self::Intent(Box::new(one))),
            OutcomeReported::METHOD => OutcomeReported::read(params).map(|one| Self::Outcome(Box::new(one))),
            TranscriptRead::METHOD => TranscriptRead::read(params).map(Self::TranscriptRead),
            EventReported::METHOD => EventReported::read(params).map(|one| Self::Event(Box::new(one))),
            SessionMcp::METHOD => SessionMcp::read(params).map(|one| Self::SessionMcp(Box::new(one))),
            DefinitionFile::METHOD => DefinitionFile::read(params).map(Self::DefinitionFile),
            unknown => Err(unknown_method(unknown)),
        }
    }
}

/// What core asks of a harness that declared `workspace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarnessRequest {
    /// `workspace.read`
    Read(Box<WorkspaceReading>),
    /// `workspace.write`
    Write(Box<WorkspaceCall>),
    /// `workspace.exec`
    Exec(Box<WorkspaceCall>),
    /// `workspace.report`
    Report,
    /// `workspace.sweep`
    Sweep(WorkspaceSweep),
    /// `workspace.remove`
    Remove(WorkspaceRemove),
}

impl HarnessRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// There is no such method, or its parameters have another form.
    pub fn read(method: &str, params: &str) -> Result<Self, Malformed> {
        match method {
            WorkspaceReading::METHOD => WorkspaceReading::read(params).map(|one| Self::Read(Box::new(one))),
            "workspace.write" => WorkspaceCall::read(params).map(|one| Self::Write(Box::new(one))),
            "workspace.exec" => WorkspaceCall::read(params).map(|one| Self::Exec(Box::new(one))),
            "workspace.report" => Nothing::read(params).map(|Nothing| Self::Report),
            WorkspaceSweep::METHOD => WorkspaceSweep::read(params).map(Self::Sweep),
            WorkspaceRemove::METHOD => WorkspaceRemove::read(params).map(Self::Remove),
            unknown => Err(unknown_method(unknown)),
        }
    }
}

/// Checks a request on its way, in either direction.
///
/// # Errors
/// There is no such method, or its parameters have another form.
pub fn check_request(method: &str, params: &str) -> Result<(), Malformed> {
    if method.starts_with("workspace.") {
        HarnessRequest::read(method, params).map(drop)
    } else {
        CoreRequest::read(method, params).map(drop)
    }
}

/// Checks a result on its way: a request of `method` may be answered so.
///
/// # Errors
/// The result has another form.
pub fn check_result(method: &str, result: &str) -> Result<(), Malformed> {
    if OutputMethod::from_wire(method).is_some() {
        return OutputReply::read(result).map(drop);
    }
    match method {
        Hello::METHOD => Welcome::read(result).map(drop),
        Lease::METHOD => Leased::read(result).map(drop),
        Renew::METHOD => Renewed::read(result).map(drop),
        Release::METHOD | EventReported::METHOD | WorkspaceRemove::METHOD => Nothing::read(result).map(drop),
        IntentRequested::METHOD => IntentReply::read(result).map(drop),
        OutcomeReported::METHOD => OutcomeReply::read(result).map(drop),
        TranscriptRead::METHOD => Transcript::read(result).map(drop),
        SessionMcp::METHOD => DiscoveredTools::read(result).map(drop),
        DefinitionFile::METHOD => DefinitionBytes::read(result).map(drop),
        WorkspaceReading::METHOD | "workspace.write" | "workspace.exec" => WorkspaceAnswer::read(result).map(drop),
        "workspace.report" => WorkspaceReport::read(result).map(drop),
        WorkspaceSweep::METHOD => WorkspaceRecords::read(result).map(drop),
        unknown => Err(unknown_method(unknown)),
    }
}

/// Checks a message on its way.
///
/// # Errors
/// There is no such message, or it has another form.
pub fn check_message(method: &str, params: &str) -> Result<(), Malformed> {
    match method {
        CancelRun::METHOD => CancelRun::read(params).map(drop),
        unknown => Err(unknown_method(unknown)),
    }
}

fn unknown_method(method: &str) -> Malformed {
    Malformed::new(format!("There is no method {method:?} in this direction."))
}
