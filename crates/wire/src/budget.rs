//! Budgets on the wire (api 3.2).

use std::collections::HashSet;

use nylorun_domain::budget::{Budget, BudgetScope, Limits, MAX_LIMIT_USD, Period};
use nylorun_domain::check::{Path, ProblemCode, Problems};
use nylorun_domain::id::AgentId;
use nylorun_domain::json::Value;

use crate::body::{Body, missing, text_of};
use crate::usage::usd;

/// Billionths of a US dollar in one.
const NANO: f64 = 1e9;

/// Reads the body of `PUT /v1/tenant/budgets`, which follows its schema.
///
/// # Errors
/// All budgets that have no limit, whose limit is too small or too large, or that stand there twice.
pub fn read(body: &Body) -> Result<Vec<Budget>, Problems> {
    let items = body.value().get("budgets").and_then(Value::as_array).unwrap_or_default();
    let list = Path::ROOT.name("budgets");
    let mut problems = Problems::default();
    let mut budgets = Vec::new();
    let mut seen = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let path = list.index(at);
        let scope = read_scope(item)?;
        let limits = read_limits(item, &path, &mut problems);
        if !seen.insert(identity(&scope)) {
            let message = format!("There is another budget for {}: put both limits into one", named(&scope));
            problems.add(ProblemCode::Custom, &path, message);
        }
        budgets.push(Budget { scope, limits });
    }
    problems.or(budgets)
}

/// `{budgets: […]}`
pub fn list(budgets: &[Budget]) -> Value {
    Value::object([("budgets", Value::Array(budgets.iter().map(to_value).collect()))])
}

fn read_scope(item: &Value) -> Result<BudgetScope, Problems> {
    let period = || text_of(item, "period").and_then(|word| Period::from_wire(&word).ok_or_else(|| missing("period")));
    match text_of(item, "scope")?.as_str() {
        "tenant" => Ok(BudgetScope::Tenant(period()?)),
        "agent" => Ok(BudgetScope::Agent(AgentId::from_trusted(text_of(item, "id")?), period()?)),
        "turn" => Ok(BudgetScope::Turn),
        _ => Err(missing("scope")),
    }
}

fn read_limits(item: &Value, path: &Path<'_>, problems: &mut Problems) -> Limits {
    let tokens = item.get("limitTokens").and_then(Value::as_i64);
    let Some(usd) = item.get("limitUsd").and_then(Value::as_f64) else {
        if tokens.is_none() {
            problems.add(ProblemCode::Custom, path, "A budget needs limitUsd, limitTokens or both");
        }
        return Limits { cost_nano_usd: None, tokens };
    };
    // The largest limit in billionths is a whole number that a double holds well enough, and the cast saturates.
    let nano = (usd * NANO).round() as i64;
    if nano < 1 {
        problems.add(ProblemCode::TooSmall, &path.name("limitUsd"), "Too small: expected number to be >=0.000000001");
    } else if usd > MAX_LIMIT_USD as f64 {
        let message = format!("Too big: expected number to be <={MAX_LIMIT_USD}");
        problems.add(ProblemCode::TooBig, &path.name("limitUsd"), message);
    }
    Limits { cost_nano_usd: Some(nano), tokens }
}

/// What there may be one budget for: an agent has one, whatever its period.
fn identity(scope: &BudgetScope) -> (&'static str, String) {
    match scope {
        BudgetScope::Tenant(_) => ("tenant", String::new()),
        BudgetScope::Agent(agent, _) => ("agent", agent.to_string()),
        BudgetScope::Turn => ("turn", String::new()),
    }
}

fn named(scope: &BudgetScope) -> String {
    match scope {
        BudgetScope::Tenant(_) => "the tenant".to_owned(),
        BudgetScope::Agent(agent, _) => format!("agent {agent}"),
        BudgetScope::Turn => "turns".to_owned(),
    }
}

fn to_value(budget: &Budget) -> Value {
    let (scope, id, period) = match &budget.scope {
        BudgetScope::Tenant(period) => ("tenant", None, Some(*period)),
        BudgetScope::Agent(agent, period) => ("agent", Some(agent.as_str()), Some(*period)),
        BudgetScope::Turn => ("turn", None, None),
    };
    let mut members = vec![("scope", Value::from(scope))];
    members.extend(id.map(|id| ("id", Value::from(id))));
    members.extend(period.map(|period| ("period", Value::from(period.as_str()))));
    members.extend(budget.limits.cost_nano_usd.map(|nano| ("limitUsd", usd(nano))));
    members.extend(budget.limits.tokens.map(|tokens| ("limitTokens", Value::from(tokens))));
    Value::object(members)
}

#[cfg(test)]
mod tests {
    use nylorun_domain::budget::Budget;
    use nylorun_domain::check::Problems;
    use nylorun_domain::json::Json;

    use super::{list, read};
    use crate::body::Body;
    use crate::schema::bodies::PUT_BUDGETS;

    fn read_text(budgets: &str) -> Result<Vec<Budget>, Problems> {
        let body = Body::new(Json::parse(&format!(r#"{{"budgets":{budgets}}}"#)).unwrap());
        assert_eq!(PUT_BUDGETS.check(body.value()), Ok(()));
        read(&body)
    }

    #[test]
    fn budgets_come_back_as_they_were_put() {
        for text in [
            "[]",
            r#"[{"scope":"tenant","period":"month","limitUsd":0.1,"limitTokens":9007199254740991}]"#,
            r#"[{"scope":"agent","id":"a","period":"day","limitUsd":9000000000},{"scope":"turn","limitTokens":1}]"#,
            r#"[{"scope":"turn","limitUsd":0.000000001}]"#,
        ] {
            let budgets = read_text(text).unwrap();
            assert_eq!(list(&budgets).to_json().as_str(), format!(r#"{{"budgets":{text}}}"#));
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_with_its_place() {
        let text = r#"[{"scope":"tenant","period":"month"},{"scope":"turn","limitUsd":1e-12},
            {"scope":"agent","id":"a","period":"day","limitUsd":9000000001},
            {"scope":"agent","id":"a","period":"month","limitTokens":1},
            {"scope":"tenant","period":"day","limitUsd":1}]"#;
        assert_eq!(
            read_text(text).unwrap_err().to_string(),
            "budgets.0: A budget needs limitUsd, limitTokens or both\n\
             budgets.1.limitUsd: Too small: expected number to be >=0.000000001\n\
             budgets.2.limitUsd: Too big: expected number to be <=9000000000\n\
             budgets.3: There is another budget for agent a: put both limits into one\n\
             budgets.4: There is another budget for the tenant: put both limits into one"
        );
    }
}
