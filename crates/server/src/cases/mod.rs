//! Bad input for every route, made from the route table and the schemas. Tests send it to a server in memory and to
//! the real program, and hold each answer to what the specification says.

mod maker;

use nylorun_domain::check::{ProblemCode, Step};
use nylorun_domain::json::{Json, Value};
use nylorun_wire::code::Code;

use crate::route::{ROUTES, Verb};
use maker::Maker;

/// What there is on the server that the cases are sent to.
#[derive(Clone, Debug)]
pub struct World {
    /// An application key.
    pub application_key: String,
    /// A management key.
    pub management_key: String,
    /// A saved agent.
    pub agent_id: String,
    /// An open session of that agent.
    pub session_id: String,
    /// A person who does not own that session.
    pub stranger: String,
    /// The cursor of an event of another session.
    pub foreign_cursor: String,
}

/// One request and the answer that it must get.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is wrong, for a test's message.
    pub name: String,
    /// The method.
    pub method: &'static str,
    /// The path with its query.
    pub target: String,
    /// Headers, `Host` and `Content-Length` left out.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The answer.
    pub expect: Expect,
}

/// The answer that a bad request must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: Code,
    /// What the message says.
    pub message: Message,
}

/// What a refusal's message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Anything but nothing.
    Some,
    /// Nothing: the body names versions instead.
    None,
    /// Exactly this.
    Exactly(&'static str),
    /// A list of problems, with this one at this place.
    Problem(ProblemCode, Vec<Step>),
}

/// All cases of all routes.
pub fn bad_requests(world: &World) -> Vec<Case> {
    ROUTES.iter().flat_map(|route| Maker { route, world }.all()).collect()
}

/// What is wrong with an answer to a case, in words.
///
/// # Errors
/// The answer is another than the case expects.
pub fn judge(case: &Case, status: u16, body: &str) -> Result<(), String> {
    let complain =
        |what: String| Err(format!("{}: {} {}: {what}: {status} {body}", case.name, case.method, case.target));
    if status != case.expect.status {
        return complain(format!("expected {} {}", case.expect.status, case.expect.code.as_str()));
    }
    if case.method == Verb::Head.as_str() {
        return if body.is_empty() { Ok(()) } else { complain("expected no body".to_owned()) };
    }
    let Ok(answer) = Json::parse(body).map(|json| json.value()) else {
        return complain("the answer is no JSON".to_owned());
    };
    let text = |name| answer.get(name).and_then(Value::as_str);
    if text("status") != Some("rejected") || text("code") != Some(case.expect.code.as_str()) {
        return complain(format!("expected the code {}", case.expect.code.as_str()));
    }
    let said = match (&case.expect.message, text("message")) {
        (Message::Some, Some(message)) => !message.is_empty(),
        (Message::None, message) => message.is_none(),
        (Message::Exactly(wanted), Some(message)) => message == *wanted,
        (Message::Problem(code, path), Some(message)) => names_problem(message, *code, path),
        (Message::Some | Message::Exactly(_) | Message::Problem(..), None) => false,
    };
    if said { Ok(()) } else { complain(format!("expected the message {:?}", case.expect.message)) }
}

fn names_problem(message: &str, code: ProblemCode, path: &[Step]) -> bool {
    let path = path.iter().map(|step| match step {
        Step::Name(name) => Value::from(name.as_str()),
        Step::Index(index) => Value::from(i64::try_from(*index).unwrap_or(i64::MAX)),
    });
    let path = Value::Array(path.collect());
    let problems = Json::parse(message).map(|json| json.value());
    problems.is_ok_and(|problems| {
        problems.as_array().unwrap_or_default().iter().any(|problem| {
            problem.get("code").and_then(Value::as_str) == Some(code.as_str()) && problem.get("path") == Some(&path)
        })
    })
}
