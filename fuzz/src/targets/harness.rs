//! Frames of the Harness API, as a channel reads them from the other side (engine a.1, a.4).

use std::fmt::Debug;

use nylorun_domain::json::{Json, parse_envelope};
use nylorun_wire::harness::effect::IntentRequested;
use nylorun_wire::harness::event::EventReported;
use nylorun_wire::harness::frame::{ApiError, BadFrame, Frame};
use nylorun_wire::harness::hello::{Hello, Welcome};
use nylorun_wire::harness::lease::{CancelRun, Lease, Leased, Release, Renew, Renewed};
use nylorun_wire::harness::method::{
    Call, CoreRequest, HarnessRequest, OutputMethod, check_message, check_request, check_result,
};
use nylorun_wire::harness::outcome::{IntentReply, OutcomeReply, OutcomeReported};
use nylorun_wire::harness::output::{OutputReply, RunOutput};
use nylorun_wire::harness::session::{DefinitionBytes, DefinitionFile, DiscoveredTools, SessionMcp};
use nylorun_wire::harness::shape::{Nothing, Shape, decode, encode};
use nylorun_wire::harness::start::read_manifest;
use nylorun_wire::harness::transcript::{Transcript, TranscriptRead};
use nylorun_wire::harness::workspace::{
    WorkspaceAnswer, WorkspaceCall, WorkspaceReading, WorkspaceRecords, WorkspaceRemove, WorkspaceReport,
    WorkspaceSweep,
};

/// Methods whose parameters and results have no type of their own.
const OTHERS: [&str; 4] = ["workspace.write", "workspace.exec", "workspace.report", "unknown"];

/// What is longer is read in the form of its method alone: more than twenty others would only take their time.
const EVERY_FORM_UP_TO_BYTES: usize = 32 << 10;

pub(super) fn harness(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Frame::decode(text) {
        Ok(frame) => {
            let printed = frame.encode();
            assert_eq!(Frame::decode(&printed).as_ref(), Ok(&frame), "{printed}");
            carried(&frame);
        }
        Err(BadFrame::Request(id, problem)) => {
            assert!(id > 0, "requests are counted from 1");
            assert!(!problem.to_string().is_empty());
        }
        Err(BadFrame::Message(problem) | BadFrame::Other(problem)) => assert!(!problem.to_string().is_empty()),
    }
}

/// What a frame carries holds in every form that it may have.
fn carried(frame: &Frame) {
    match frame {
        Frame::Request { method, params, .. } => {
            let is_request = CoreRequest::read(method, params.as_str()).is_ok()
                || HarnessRequest::read(method, params.as_str()).is_ok();
            assert_eq!(check_request(method, params.as_str()).is_ok(), is_request, "{method}");
            if params.as_str().len() <= EVERY_FORM_UP_TO_BYTES {
                parameters(params);
            }
        }
        Frame::Message { method, params } => {
            let _ = check_message(method, params.as_str());
            let _ = holds::<CancelRun>(params);
        }
        Frame::Response { result: Ok(result), .. } if result.as_str().len() > EVERY_FORM_UP_TO_BYTES => {
            let _ = check_result(Lease::METHOD, result.as_str());
        }
        Frame::Response { result: Ok(result), .. } => results(result),
        Frame::Response { result: Err(error), .. } => {
            let _ = holds::<ApiError>(&encode(error));
        }
        Frame::Abort { .. } | Frame::Ping => {}
    }
}

fn parameters(params: &Json) {
    call::<Hello>(params);
    call::<Lease>(params);
    call::<Renew>(params);
    call::<Release>(params);
    call::<IntentRequested>(params);
    call::<OutcomeReported>(params);
    call::<TranscriptRead>(params);
    call::<EventReported>(params);
    call::<SessionMcp>(params);
    call::<DefinitionFile>(params);
    call::<WorkspaceReading>(params);
    call::<WorkspaceSweep>(params);
    call::<WorkspaceRemove>(params);
    holds::<WorkspaceCall>(params);
    output(params);
}

fn results(result: &Json) {
    let known = [Hello::METHOD, Lease::METHOD, Renew::METHOD, IntentRequested::METHOD, OutcomeReported::METHOD];
    for method in known.into_iter().chain(OTHERS) {
        let _ = check_result(method, result.as_str());
    }
    holds::<Welcome>(result);
    holds::<Renewed>(result);
    holds::<Nothing>(result);
    holds::<IntentReply>(result);
    holds::<OutcomeReply>(result);
    holds::<OutputReply>(result);
    holds::<Transcript>(result);
    holds::<DiscoveredTools>(result);
    holds::<DefinitionBytes>(result);
    holds::<WorkspaceAnswer>(result);
    holds::<WorkspaceReport>(result);
    holds::<WorkspaceRecords>(result);
    if let Some(leased) = holds::<Leased>(result) {
        // A harness reads the manifest that it was given, or says what is wrong with it.
        let _ = read_manifest(&leased.input.manifest);
    }
}

/// The parameters of a request, which go by its method too.
fn call<C: Call + PartialEq + Debug>(params: &Json) {
    if holds::<C>(params).is_some() {
        assert!(check_request(C::METHOD, params.as_str()).is_ok(), "{} takes {params}", C::METHOD);
    }
}

/// An output means the same after it was read and printed.
fn output(params: &Json) {
    let Some(run) = holds::<RunOutput>(params) else { return };
    for method in OutputMethod::ALL.iter().copied() {
        let Ok(result) = run.clone().result(method) else { continue };
        let (by, again) = RunOutput::of(&run.run_id, result.clone());
        assert_eq!((by, again.result(by)), (method, Ok(result)));
    }
}

/// What is read as this shape is printed so that it is read back, and printed the same again.
fn holds<S: Shape + PartialEq + Debug>(document: &Json) -> Option<S> {
    let shape = decode::<S>(document).ok()?;
    let printed = encode(&shape);
    assert!(parse_envelope(printed.as_str()).is_ok(), "{printed}");
    assert_eq!(decode::<S>(&printed).as_ref(), Ok(&shape), "{printed}");
    assert_eq!(encode(&shape), printed, "a fixed point");
    Some(shape)
}
