//! Budgets as the model gate sees them: whether a call may be made (engine e.5).

use nylorun_domain::budget::Exhausted;

use crate::BoxFuture;
use crate::models::ModelCall;

/// Which budgets a tenant has: a text that changes when they do. `None`: it never had any.
pub type BudgetsVersion = Option<String>;

/// What is decided of a call.
#[derive(Debug)]
pub enum Admission {
    /// It may be made. Keep the pass until the call has ended.
    Granted(Pass),
    /// A budget is used up.
    Refused(Exhausted),
}

/// A call that is in flight, and counts towards budgets as such.
#[must_use = "a call counts as ended when its pass is dropped"]
pub struct Pass(Option<Box<dyn FnOnce() + Send>>);

impl Pass {
    /// A call that no budget covers.
    pub fn uncounted() -> Self {
        Self(None)
    }

    /// A call at whose end, whatever it is, `ended` runs once.
    pub fn counted(ended: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(ended)))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Pass(counted)" } else { "Pass(uncounted)" })
    }
}

/// Decides of model calls before they are made.
pub trait Budgets: Send + Sync {
    /// Whether the budgets of this version leave room for the call. When they cannot be read, they do.
    fn admit<'a>(&'a self, call: &'a ModelCall, version: &'a BudgetsVersion) -> BoxFuture<'a, Admission>;
}
