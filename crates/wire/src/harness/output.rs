//! How a run's segment ended (engine a.3, a.4).

use nylorun_domain::checkpoint::{Interaction, State};
use nylorun_domain::id::EffectId;
use nylorun_domain::json::Json;
use nylorun_domain::segment::{TurnEnd, TurnOutput};
use nylorun_domain::transcript::Edit;

use super::method::OutputMethod;
use super::shape::{Malformed, shapes, valued, words};
use crate::checkpoint::{pending_from_node, pending_to_value};

valued! {
    Interaction: pending_to_value, pending_from_node;
}

shapes! {
    /// A run's output, under each of its methods. Which members are there depends on the status.
    RunOutput {
        /// The run.
        run_id: String = "runId",
        /// With what the segment ended; absent when the engine threw.
        status: Option<OutputStatus> = "status",
        /// The engine's state, from which the next segment goes on.
        state: Option<State> = "state",
        /// The turn's output, byte for byte.
        output: Option<Json> = "output",
        /// What is asked.
        pending: Option<Vec<Interaction>> = "pending",
        /// Why the turn failed.
        error: Option<OutputError> = "error",
        /// The effects that are open or uncertain.
        effect_ids: Option<Vec<EffectId>> = "effectIds",
        /// Effects that are to be given up.
        cancel_effect_ids: Option<Vec<EffectId>> = "cancelEffectIds",
        /// What the segment did to the transcript.
        transcript: Option<Vec<Edit>> = "transcript",
        /// What the engine threw.
        thrown: Option<Thrown> = "thrown",
    }

    /// Why a turn failed.
    OutputError {
        /// A dotted word.
        code: String = "code",
        /// What happened.
        message: String = "message",
        /// Where in a flow.
        path: Option<String> = "path",
    }

    /// What an engine threw.
    Thrown {
        /// Its code.
        code: Option<String> = "code",
        /// Its words.
        message: String = "message",
    }

    /// The answer to an output, once it is settled.
    OutputReply {
        /// Where the record stands, when it is known.
        cursor: Option<i64> = "cursor",
    }
}

words! {
    /// With what a segment ended.
    OutputStatus {
        /// The turn is done.
        Completed = "completed",
        /// Calls wait for people.
        Paused = "paused",
        /// The segment used up its budget.
        Yielded = "yielded",
        /// Linked work is open.
        Waiting = "waiting",
        /// An effect is uncertain.
        Uncertain = "uncertain",
        /// The turn failed.
        Failed = "failed",
        /// The turn was cancelled.
        Cancelled = "cancelled",
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// The segment ended so.
    Output(TurnOutput),
    /// The turn was cancelled before the segment ended: there is nothing to settle.
    Cancelled,
    /// The harness lost its session to another owner.
    OwnershipLost,
}

impl RunOutput {
    /// The form of what a run came to, and by which method it goes.
    pub fn of(run_id: &str, result: RunResult) -> (OutputMethod, Self) {
        let bare = Self::bare(run_id);
        let TurnOutput { end, edits } = match result {
            RunResult::Output(output) => output,
            RunResult::Cancelled => {
                return (OutputMethod::Failed, Self { status: Some(OutputStatus::Cancelled), ..bare });
            }
            RunResult::OwnershipLost => {
                let code = Some(OWNERSHIP_LOST.to_owned());
                let thrown = Thrown { code, message: "the session has another owner".to_owned() };
                return (OutputMethod::Failed, Self { thrown: Some(thrown), ..bare });
            }
        };
        let bare = Self { transcript: Some(edits), ..bare };
        match end {
            TurnEnd::Completed { output } => {
                let status = Some(OutputStatus::Completed);
                (OutputMethod::Completed, Self { status, output: Some(output), ..bare })
            }
            TurnEnd::Failed { code, message } => {
                let error = Some(OutputError { code, message, path: None });
                (OutputMethod::Failed, Self { status: Some(OutputStatus::Failed), error, ..bare })
            }
            TurnEnd::Uncertain => (OutputMethod::Waiting, Self { status: Some(OutputStatus::Uncertain), ..bare }),
            TurnEnd::Yielded { state } => {
                (OutputMethod::Checkpoint, Self { status: Some(OutputStatus::Yielded), state: Some(state), ..bare })
            }
            TurnEnd::Paused { interactions, state } => {
                let (status, pending) = (Some(OutputStatus::Paused), Some(interactions));
                (OutputMethod::Paused, Self { status, pending, state: Some(state), ..bare })
            }
        }
    }

    fn bare(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            status: None,
            state: None,
            output: None,
            pending: None,
            error: None,
            effect_ids: None,
            cancel_effect_ids: None,
            transcript: None,
            thrown: None,
        }
    }

    /// What the run came to.
    ///
    /// # Errors
    /// The method does not go with the status, or a member that the status needs is missing.
    pub fn result(self, method: OutputMethod) -> Result<RunResult, Malformed> {
        let Some(status) = self.status else { return self.threw(method) };
        if method != method_of(status) {
            let problem = format!("may not be {:?} by {}", status.as_str(), method.as_str());
            return Err(Malformed::new(problem).within("status"));
        }
        let edits = self.transcript.unwrap_or_default();
        let end = match status {
            OutputStatus::Completed => TurnEnd::Completed { output: needed(self.output, "output")? },
            OutputStatus::Paused => {
                let interactions = needed(self.pending, "pending")?;
                TurnEnd::Paused { interactions, state: needed(self.state, "state")? }
            }
            OutputStatus::Yielded => TurnEnd::Yielded { state: needed(self.state, "state")? },
            OutputStatus::Uncertain => TurnEnd::Uncertain,
            OutputStatus::Failed => {
                let OutputError { code, message, .. } = needed(self.error, "error")?;
                TurnEnd::Failed { code, message }
            }
            OutputStatus::Cancelled => return Ok(RunResult::Cancelled),
            OutputStatus::Waiting => {
                return Err(Malformed::new("may not be \"waiting\": no effect is ever pending here").within("status"));
            }
        };
        Ok(RunResult::Output(TurnOutput { end, edits }))
    }

    fn threw(self, method: OutputMethod) -> Result<RunResult, Malformed> {
        let Thrown { code, message } = needed(self.thrown, "status or thrown")?;
        if method != OutputMethod::Failed {
            return Err(Malformed::new(format!("may not come by {}", method.as_str())).within("thrown"));
        }
        match code {
            Some(code) if code == OWNERSHIP_LOST => Ok(RunResult::OwnershipLost),
            code => {
                let end = TurnEnd::Failed { code: code.unwrap_or_else(|| "internal".to_owned()), message };
                Ok(RunResult::Output(TurnOutput { end, edits: Vec::new() }))
            }
        }
    }
}

/// The code of an engine that lost its session (engine b.4, Run end).
const OWNERSHIP_LOST: &str = "ownership_lost";

fn method_of(status: OutputStatus) -> OutputMethod {
    match status {
        OutputStatus::Completed => OutputMethod::Completed,
        OutputStatus::Paused => OutputMethod::Paused,
        OutputStatus::Yielded => OutputMethod::Checkpoint,
        OutputStatus::Waiting | OutputStatus::Uncertain => OutputMethod::Waiting,
        OutputStatus::Failed | OutputStatus::Cancelled => OutputMethod::Failed,
    }
}

fn needed<T>(member: Option<T>, name: &str) -> Result<T, Malformed> {
    member.ok_or_else(|| Malformed::new("is missing").within(name))
}
