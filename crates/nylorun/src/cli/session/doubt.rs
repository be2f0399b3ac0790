//! Effects whose outcome is unknown: which calls they are, and how to settle them.

use std::collections::HashMap;

use nylorun_client::{Error, Session, SessionView, UncertainEffect};
use serde_json::Value;

use super::super::show::call_in_doubt;
use super::super::term::{Style, Tone, one_line, visible};

const CALL_WIDTH: usize = 200;

/// The calls behind a session's uncertain effects, by the effect's id. `view` has no place for them; the record
/// names each when it becomes uncertain.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(crate) async fn calls_in_doubt(session: &Session, view: &SessionView) -> Result<HashMap<String, String>, Error> {
    if view.uncertain_effects.is_empty() {
        return Ok(HashMap::new());
    }
    let events = session.history(None, None).await?.items;
    let marks = events.iter().filter(|event| event.kind == "effect.uncertain");
    let named = marks.filter_map(|event| {
        let effect = event.payload.get("effectId").and_then(Value::as_str)?;
        Some((effect.to_owned(), call_in_doubt(&event.payload)?))
    });
    Ok(named.collect())
}

/// What is unknown, and the ways to settle it.
pub(crate) fn explain(
    view: &SessionView,
    effect: &UncertainEffect,
    calls: &HashMap<String, String>,
    style: &Style,
) -> String {
    let what = match calls.get(&effect.effect_id) {
        Some(call) => one_line(call, CALL_WIDTH),
        None => visible(format!("{} effect {}", effect.kind, effect.effect_id).trim()),
    };
    let head = style.paint(Tone::Warn, &format!("It is unknown whether this happened: {what}"));
    let why = effect.error.as_deref().map(|error| format!("({})\n", one_line(error, CALL_WIDTH))).unwrap_or_default();
    let command = visible(&format!("nylorun session settle {} {}", view.id, effect.effect_id));
    let command = style.paint(Tone::Accent, &command);
    let waits = view.active_turn_id.is_some() && effect.turn_id == view.active_turn_id;
    let ways = if waits {
        format!(
            "Look whether it did, then say so, and the turn goes on:\n  {command} …\n    \
            --value JSON   it happened, with this result\n    \
            --error TEXT   it failed, or did not happen and shall not\n    \
            --retry        it did not happen, or may happen twice: run it again\n"
        )
    } else {
        format!(
            "Its turn has ended, and nothing waits for it. Look whether it did, then say so, and it is not counted any \
            more:\n  {command} …\n    \
            --value JSON   it happened, with this result\n    \
            --error TEXT   it failed, or did not happen\n"
        )
    };
    format!("\n{head}\n{why}{ways}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_goes_on_for_an_effect_of_an_ended_turn() {
        let view = json!({"id": "s1", "agentId": "a", "ownerUserId": "me", "manifestHash": "h",
            "implementationVersion": "dev", "status": "running", "activeTurnId": "t2",
            "uncertainEffects": [{"effectId": "e1", "turnId": "t1", "kind": "tool", "error": null}]});
        let view: SessionView = serde_json::from_value(view).unwrap();
        let expected = "
It is unknown whether this happened: tool effect e1
Its turn has ended, and nothing waits for it. Look whether it did, then say so, and it is not counted any more:
  nylorun session settle s1 e1 …
    --value JSON   it happened, with this result
    --error TEXT   it failed, or did not happen
";
        assert_eq!(explain(&view, &view.uncertain_effects[0], &HashMap::new(), &Style::plain()), expected);
    }
}
