//! One connected harness: its requests, each answered for the runs that this connection holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nylorun_domain::json::Json;
use nylorun_ports::BoxFuture;
use nylorun_ports::abort::Abort;
use nylorun_ports::run::{CoreError, RunEnd};
use nylorun_wire::harness::API;
use nylorun_wire::harness::effect::IntentRequested;
use nylorun_wire::harness::event::EventReported;
use nylorun_wire::harness::frame::{ApiError, ErrorCode};
use nylorun_wire::harness::hello::{Hello, SandboxPreference, Welcome};
use nylorun_wire::harness::lease::{Release, ReleaseReason, Renew};
use nylorun_wire::harness::method::{Call, CoreRequest, OutputMethod};
use nylorun_wire::harness::outcome::OutcomeReported;
use nylorun_wire::harness::output::{OutputReply, RunOutput, RunResult};
use nylorun_wire::harness::session::{DefinitionFile, SessionMcp};
use nylorun_wire::harness::shape::{Nothing, Nullable, encode};
use nylorun_wire::harness::transcript::{Transcript, TranscriptRead};

use super::HarnessServer;
use super::run::{Run, not_held};
use super::state::ConnectionId;
use crate::channel::{Handled, Handler};
use crate::start;

/// A harness that is connected.
pub(super) struct Connection {
    server: HarnessServer,
    id: ConnectionId,
    /// Whether it said hello, in a version of the API that both speak.
    is_welcome: AtomicBool,
}

impl Connection {
    pub(super) fn new(server: HarnessServer, id: ConnectionId) -> Self {
        Self { server, id, is_welcome: AtomicBool::new(false) }
    }

    async fn answer(&self, request: CoreRequest, abort: Abort) -> Handled {
        let result = match request {
            CoreRequest::Lease(_) => return self.lease(abort).await,
            CoreRequest::Hello(hello) => reply::<Hello>(self.hello(&hello)),
            CoreRequest::Renew(renew) => reply::<Renew>(self.held(&renew.run_id).map(|run| run.renew())),
            CoreRequest::Release(release) => reply::<Release>(self.release(&release)),
            CoreRequest::Intent(wanted) => reply::<IntentRequested>(match self.held(&wanted.run_id) {
                Ok(run) => run.intend(&wanted).await,
                Err(error) => Err(error),
            }),
            CoreRequest::Outcome(reported) => reply::<OutcomeReported>(match self.held(&reported.run_id) {
                Ok(run) => run.report(*reported).await,
                Err(error) => Err(error),
            }),
            CoreRequest::TranscriptRead(read) => {
                reply::<TranscriptRead>(self.held(&read.run_id).map(|run| Transcript {
                    cursor: start::cursor(run.start()),
                    entries: run.start().transcript.iter().map(|line| line.entry().clone()).collect(),
                }))
            }
            CoreRequest::Event(reported) => reply::<EventReported>(self.note(*reported).await.map(|()| Nothing)),
            CoreRequest::SessionMcp(mcp) => {
                reply::<SessionMcp>(self.held(&mcp.run_id).and_then(|_| Err(not_built("the tools of MCP servers"))))
            }
            CoreRequest::DefinitionFile(file) => {
                reply::<DefinitionFile>(self.held(&file.run_id).and_then(|_| Err(not_built("files of definitions"))))
            }
            CoreRequest::Output(method, output) => self.output(method, *output).await.map(|reply| encode(&reply)),
        };
        result.into()
    }

    fn hello(&self, hello: &Hello) -> Result<Welcome, ApiError> {
        if hello.api != API {
            let problem = format!("api must be {API}, and was {}: use a harness of this release", hello.api);
            return Err(ApiError::new(ErrorCode::Invalid, problem));
        }
        self.is_welcome.store(true, Ordering::Release);
        tracing::info!(connection = self.id, name = hello.name, version = hello.version, "a harness is connected");
        let config = &self.server.0.config;
        Ok(Welcome {
            api: API,
            tenant_id: config.tenant.clone(),
            sandbox: SandboxPreference { backend: Nullable(config.backend.clone()) },
            renew_every_ms: u64::try_from(config.renew_every.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Waits for a run. From when the answer is on its way the run counts as taken, so that a cancel comes after it.
    async fn lease(&self, mut abort: Abort) -> Handled {
        if !self.is_welcome.load(Ordering::Acquire) {
            return Err(ApiError::new(ErrorCode::Invalid, "say hello before the first lease")).into();
        }
        let mut granted = self.server.state().lease(self.id);
        self.server.count_leases();
        let run = tokio::select! {
            biased;
            run = &mut granted => run.ok(),
            _ = abort.aborted() => {
                granted.close();
                if let Ok(run) = granted.try_recv() {
                    self.server.state().give_back(run);
                }
                None
            }
        };
        self.server.count_leases();
        let channel = self.server.state().channel(self.id);
        let (Some(run), Some(channel)) = (run, channel) else {
            return Err(ApiError::new(ErrorCode::Unavailable, "the lease was given up, or core stops")).into();
        };
        let leased = encode(&start::leased(run.id(), run.start()));
        Handled { result: Ok(leased), then: Some(Box::new(move || run.taken(channel))) }
    }

    fn held(&self, run_id: &str) -> Result<Arc<Run>, ApiError> {
        self.server.state().held(self.id, run_id).cloned().ok_or_else(|| not_held(run_id))
    }

    fn release(&self, release: &Release) -> Result<Nothing, ApiError> {
        let run = self.held(&release.run_id)?;
        run.end(match release.reason {
            ReleaseReason::Shutdown => RunEnd::Stopped,
            ReleaseReason::OwnershipLost => RunEnd::Released(CoreError::OwnershipLost),
            ReleaseReason::ConnectionLost => RunEnd::ConnectionLost,
        });
        self.server.state().forget(&run);
        Ok(Nothing)
    }

    async fn note(&self, reported: EventReported) -> Result<(), ApiError> {
        // Without a run it could only be of a request for a workspace, and core makes none of those yet.
        let run_id = reported.run_id.clone().unwrap_or_default();
        self.held(&run_id)?.note(reported).await
    }

    async fn output(&self, method: OutputMethod, output: RunOutput) -> Result<OutputReply, ApiError> {
        let run = self.held(&output.run_id)?;
        let reply = match output.result(method)? {
            RunResult::Output(output) => run.settle(method, output).await,
            RunResult::Cancelled => {
                run.end(RunEnd::Released(CoreError::TurnCancelled));
                Ok(OutputReply { cursor: None })
            }
            RunResult::OwnershipLost => {
                run.end(RunEnd::Released(CoreError::OwnershipLost));
                Ok(OutputReply { cursor: None })
            }
        };
        self.server.state().forget(&run);
        reply
    }
}

/// The answer to a request of this method.
fn reply<C: Call>(result: Result<C::Reply, ApiError>) -> Result<Json, ApiError> {
    result.map(|reply| encode(&reply))
}

fn not_built(what: &str) -> ApiError {
    ApiError::new(ErrorCode::Unavailable, format!("{what} are not available yet"))
}

impl Handler for Connection {
    fn handle(&self, method: String, params: Json, abort: Abort) -> BoxFuture<'_, Handled> {
        Box::pin(async move {
            match CoreRequest::read(&method, params.as_str()) {
                Ok(request) => self.answer(request, abort).await,
                Err(error) => Handled::from(Err(error.into())),
            }
        })
    }
}
