//! What a route is, and how a request finds its own.

mod access;
mod parts;
mod retention;
mod sandbox;
mod table;
mod usage;

use std::pin::Pin;

use hyper::Method;
pub use nylorun_domain::caller::{Audience, Scope};
use nylorun_wire::code::Code;
use nylorun_wire::error::Rejection;
use nylorun_wire::schema::Schema;

pub use table::ROUTES;

use crate::path::Query;
use crate::reply::Reply;
use crate::request::Call;

/// A handler's work.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Reply, Rejection>> + Send>>;

/// One route: the only place that says anything of it.
pub struct Route {
    /// The method.
    pub method: Verb,
    /// The path; `{name}` stands for one segment.
    pub path: &'static str,
    /// The operation's name in the OpenAPI documents.
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// The group that it belongs to in the OpenAPI documents.
    pub tag: &'static str,
    /// Who may call it.
    pub audience: Audience,
    /// Scopes of which a subject needs one.
    pub scopes: &'static [Scope],
    /// Parameters of the query.
    pub query: &'static [QueryParam],
    /// What is sent.
    pub body: BodyKind,
    /// What is answered.
    pub answer: AnswerKind,
    /// Refusals of its own, beside those of the pipeline.
    pub errors: &'static [Refusal],
    /// Whether it begins work, which a server that is being stopped refuses.
    pub work: Work,
    /// Whether it answers pages of a list, which have a code of their own when they cannot be read.
    pub pages: Pages,
    pub(crate) handler: fn(Call) -> Answering,
}

/// Methods of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET`
    Get,
    /// `PUT`
    Put,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
    /// `HEAD`
    Head,
}

impl Verb {
    /// The method's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
            Self::Head => "HEAD",
        }
    }
}

/// A parameter of the query; none is ever required.
#[derive(Clone, Copy, Debug)]
pub struct QueryParam {
    /// Its name.
    pub name: &'static str,
    /// What it must be like, as if it were a JSON value.
    pub schema: Schema,
    /// What it does.
    pub summary: &'static str,
}

/// What a route takes as its body.
#[derive(Clone, Copy, Debug)]
pub enum BodyKind {
    /// Nothing; what is sent is not looked at.
    None,
    /// JSON.
    Json(Schema),
    /// JSON; nothing stands for `{}`.
    OptionalJson(Schema),
    /// Bytes of any media type.
    Bytes {
        /// What they are.
        what: &'static str,
        /// Most bytes.
        limit_bytes: u64,
    },
}

/// What a route answers when it is done: with `200`, where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub enum AnswerKind {
    /// JSON.
    Json(Schema),
    /// JSON; with `201` for what is new.
    Stored(Schema),
    /// Nothing.
    Empty,
    /// Server-sent events, each with data like this.
    Events(Schema),
}

/// A refusal that a route documents.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: Code,
    /// When.
    pub when: &'static str,
}

/// Whether a route begins work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It does.
    Begins,
    /// It does not.
    None,
}

/// Whether a route answers pages of a list (api 1.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// It does not.
    Never,
    /// It does where the query has `limit`.
    WithLimit,
    /// It does.
    Always,
}

impl Pages {
    /// Whether a request with this query asks for a page.
    pub(crate) fn are_asked_for(self, query: &Query) -> bool {
        match self {
            Self::Never => false,
            Self::WithLimit => query.get("limit").is_some(),
            Self::Always => true,
        }
    }
}

/// A request's route and the raw segments that stand for its parameters.
pub(crate) struct Match<'p> {
    pub(crate) route: &'static Route,
    pub(crate) params: Vec<(&'static str, &'p str)>,
}

/// The route of this method and path.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Option<Match<'p>> {
    let mut routes = ROUTES.iter().filter(|route| route.method.as_str() == method.as_str());
    routes.find_map(|route| Some(Match { route, params: match_path(route.path, path)? }))
}

/// The parameters of `path`, when it has the segments of `pattern`. A parameter is never empty.
fn match_path<'p>(pattern: &'static str, path: &'p str) -> Option<Vec<(&'static str, &'p str)>> {
    let mut params = Vec::new();
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(params),
            (Some(want), Some(have)) => match param_name(want) {
                Some(name) if !have.is_empty() => params.push((name, have)),
                None if want == have => {}
                Some(_) | None => return None,
            },
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
}

/// The name of a parameter's segment.
pub(crate) fn param_name(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

impl Route {
    /// The names of the path's parameters.
    pub fn params(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(param_name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BodyKind, ROUTES, Verb, match_path};

    #[test]
    fn segments_match_one_to_one() {
        assert_eq!(match_path("/v1/a/{id}/b", "/v1/a/x%2Fy/b"), Some(vec![("id", "x%2Fy")]));
        for path in ["/v1/a/x", "/v1/a//b", "/v1/a/x/b/", "/v1/a/x/b/c", "//v1/a/x/b", "/v1/A/x/b", ""] {
            assert_eq!(match_path("/v1/a/{id}/b", path), None, "{path}");
        }
    }

    #[test]
    fn every_route_is_declared_once_and_in_full() {
        let mut seen = BTreeSet::new();
        let mut names = BTreeSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.method.as_str(), route.path)), "{} twice", route.path);
            assert!(names.insert(route.name), "{} twice", route.name);
            assert!(route.path.starts_with("/v1/"), "{}", route.path);
            let takes_body = matches!(route.body, BodyKind::Json(_) | BodyKind::OptionalJson(_));
            let is_read = matches!(route.method, Verb::Get | Verb::Head);
            assert!(!(takes_body && is_read), "{}", route.path);
        }
    }
}
