//! A request's head as the pipeline reads it, and what a handler is given.

use std::sync::Arc;

use hyper::header::HeaderName;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use nylorun_domain::caller::Caller;
use nylorun_domain::check::{Path, Problems};
use nylorun_domain::id::{AgentId, EffectId, MessageId, SessionId};
use nylorun_domain::json::Value;
use nylorun_domain::{check::Complaint, tool::WorkspaceTool};
use nylorun_wire::body::Body;
use nylorun_wire::code::Code;
use nylorun_wire::cursor::CursorError;
use nylorun_wire::error::Rejection;
use nylorun_wire::schema::Schema;

use crate::Server;
use crate::path::Query;
use crate::route::Route;
use crate::upload::Upload;

/// A header as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent<'a> {
    /// Not at all.
    Absent,
    /// Once, in visible ASCII.
    Once(&'a str),
    /// More than once, or in other characters.
    Unreadable,
}

/// The head of a request.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
}

impl Head {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(Query::parse).unwrap_or_default(),
            headers: parts.headers,
        }
    }

    pub(crate) fn header(&self, name: impl AsHeader) -> Sent<'_> {
        let mut values = name.all(&self.headers);
        match (values.next(), values.next()) {
            (None, _) => Sent::Absent,
            (Some(only), None) => only.to_str().map_or(Sent::Unreadable, Sent::Once),
            (Some(_), Some(_)) => Sent::Unreadable,
        }
    }

    pub(crate) fn sends(&self, name: impl AsHeader) -> bool {
        self.header(name) != Sent::Absent
    }
}

/// A header's name, in either form in which this crate has it.
pub(crate) trait AsHeader {
    fn all(self, headers: &HeaderMap) -> hyper::header::ValueIter<'_, hyper::header::HeaderValue>;
}

impl AsHeader for HeaderName {
    fn all(self, headers: &HeaderMap) -> hyper::header::ValueIter<'_, hyper::header::HeaderValue> {
        headers.get_all(self).iter()
    }
}

impl AsHeader for &'static str {
    fn all(self, headers: &HeaderMap) -> hyper::header::ValueIter<'_, hyper::header::HeaderValue> {
        headers.get_all(self).iter()
    }
}

/// A path's parameters by name, percent-decoded.
pub(crate) type Params = Vec<(&'static str, String)>;

/// Most elements of a page, unless the route says otherwise (api 1.10).
pub(crate) const MAX_LIMIT: i64 = 200;

/// What a query parameter that names something must be.
pub(crate) const AN_ID: &str = "an id: 1 to 512 characters, none of them a control character";

/// One call of a handler: everything is checked as far as the route table says how.
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) route: &'static Route,
    pub(crate) caller: Option<Caller>,
    pub(crate) params: Params,
    pub(crate) query: Query,
    pub(crate) last_event_id: Option<String>,
    pub(crate) body: Option<Body>,
    pub(crate) upload: Option<Upload>,
}

impl Call {
    /// Who calls. A route that takes anyone never asks.
    pub(crate) fn caller(&self) -> Result<&Caller, Rejection> {
        self.caller.as_ref().ok_or_else(Rejection::internal)
    }

    /// The value of `{name}` in the route's path.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn session_id(&self) -> Result<SessionId, Rejection> {
        parse_id("id", self.param("id"), SessionId::parse)
    }

    pub(crate) fn agent_id(&self) -> Result<AgentId, Rejection> {
        parse_id("agentId", self.param("agentId"), AgentId::parse)
    }

    pub(crate) fn effect_id(&self) -> Result<EffectId, Rejection> {
        parse_id("effectId", self.param("effectId"), EffectId::parse)
    }

    pub(crate) fn message_id(&self) -> Result<MessageId, Rejection> {
        parse_id("messageId", self.param("messageId"), MessageId::parse)
    }

    pub(crate) fn tool(&self) -> Result<WorkspaceTool, Rejection> {
        let name = self.param("tool");
        let unknown = || Rejection::bad_request("Unknown tool: use bash, read, write, edit, grep or glob");
        WorkspaceTool::from_wire(name).ok_or_else(unknown)
    }

    /// The query parameter of this name, which may be sent once.
    pub(crate) fn given(&self, name: &str) -> Result<Option<&str>, Rejection> {
        let mut values = self.query.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(invalid_query(name, format!("{name} may be sent once"))),
        }
    }

    /// The query parameter of this name as `read` understands it; what it does not must be `expected`.
    pub(crate) fn read_query<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Rejection> {
        let Some(given) = self.given(name)? else { return Ok(None) };
        let shown: String = given.chars().take(MAX_SHOWN).collect();
        let wrong = || invalid_query(name, format!("{name} must be {expected}; it is {shown:?}"));
        read(given).map(Some).ok_or_else(wrong)
    }

    /// The size of the page that is asked for, within what the route declares.
    pub(crate) fn limit(&self) -> Result<Option<usize>, Rejection> {
        let declared = self.route.query.iter().find(|param| param.name == "limit");
        let most = match declared.map(|param| param.schema) {
            Some(Schema::Integer { max, .. }) => max,
            Some(_) | None => MAX_LIMIT,
        };
        self.read_query("limit", &format!("a whole number from 1 to {most}"), |text| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let limit = text.parse::<i64>().ok().filter(|limit| digits && (1..=most).contains(limit));
            limit.and_then(|limit| usize::try_from(limit).ok())
        })
    }

    /// Pages refuse parameters that the route does not have: a filter with a slip of the pen would show everything.
    pub(crate) fn refuse_unknown_queries(&self) -> Result<(), Rejection> {
        let known: Vec<_> = self.route.query.iter().map(|param| param.name).collect();
        match self.query.names().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(unknown) => {
                let shown: String = unknown.chars().take(MAX_SHOWN).collect();
                let message = format!("{shown:?} is no parameter of this list; it has {}", known.join(", "));
                Err(invalid_query(&shown, message))
            }
        }
    }

    /// The body. Routes without one never ask.
    pub(crate) fn body(&self) -> Result<&Body, Rejection> {
        self.body.as_ref().ok_or_else(|| Rejection::bad_request("Invalid JSON"))
    }

    /// The body of bytes, once. Routes without one never ask.
    pub(crate) fn upload(&mut self) -> Result<Upload, Rejection> {
        self.upload.take().ok_or_else(Rejection::internal)
    }
}

pub(crate) fn parse_id<T, E: Into<Complaint>>(
    name: &str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Rejection> {
    parse(text).map_err(|error| {
        let complaint: Complaint = error.into();
        Rejection::invalid(&Problems::one(complaint.code, &Path::ROOT.name(name), complaint.message))
    })
}

/// How much of a query's wrong value is shown, in characters.
const MAX_SHOWN: usize = 64;

/// A query parameter that is not what the route takes: `400 query_invalid`.
pub(crate) fn invalid_query(name: &str, message: String) -> Rejection {
    let path = Value::Array(vec![Value::from(name)]);
    Rejection::new(400, Code::QueryInvalid, message).with_details(Value::object([("path", path)]))
}

/// A page's cursor that cannot be read, or belongs to other pages.
pub(crate) fn bad_page_cursor(error: CursorError) -> Rejection {
    let code = match error {
        CursorError::Malformed => Code::CursorInvalid,
        CursorError::Mismatch => Code::CursorMismatch,
    };
    Rejection::new(400, code, "Invalid cursor")
}
