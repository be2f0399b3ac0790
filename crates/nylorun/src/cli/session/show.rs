//! `nylorun session show`

use std::collections::HashMap;

use clap::Args;
use nylorun_client::SessionView;
use serde_json::Value;

use super::super::connect::ConnectArgs;
use super::super::failure::Failure;
use super::super::output::OutputArgs;
use super::super::term::{Style, Tone, one_line, visible};
use super::{Inputs, answers, asked, calls_in_doubt, explain, questions};

/// `nylorun session show`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun session show ID
  nylorun session show ID --json | jq .uncertainEffects")]
pub(crate) struct ShowArgs {
    /// The session
    id: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Shows it.
///
/// # Errors
/// What the server refused, or that it could not be reached.
pub(super) async fn run(args: ShowArgs) -> Result<(), Failure> {
    let session = args.connect.connection()?.client()?.session(&args.id);
    let view = session.view().await?;
    let calls = calls_in_doubt(&session, &view).await?;
    let inputs = Inputs::read(&session, &view).await?;
    args.output.print(&view, |view| {
        let style = Style::of_stdout();
        told(view, &calls, &style) + &open_questions(view, &inputs, &style)
    })
}

fn told(view: &SessionView, calls: &HashMap<String, String>, style: &Style) -> String {
    let hash = one_line(&view.manifest_hash, 12);
    let mut lines = vec![
        ("session", visible(&view.id)),
        ("agent", visible(&format!("{}, version {}, manifest {hash}", view.agent_id, view.implementation_version))),
        ("owner", visible(&view.owner_user_id)),
        ("status", visible(view.status.as_str())),
    ];
    if let Some(turn) = &view.active_turn_id {
        lines.push(("turn", visible(turn)));
    }
    if let Some(error) = &view.error {
        lines.push(("error", visible(error)));
    }
    lines.push(("workspace", workspace(view)));
    let line = |(name, text): (&str, String)| format!("{}  {text}\n", style.paint(Tone::Faint, &format!("{name:9}")));
    let mut text: String = lines.into_iter().map(line).collect();
    for effect in &view.uncertain_effects {
        text.push_str(&explain(view, effect, calls, style));
    }
    text
}

fn open_questions(view: &SessionView, inputs: &Inputs, style: &Style) -> String {
    let text = |question| asked(question, inputs, style) + &answers(&view.id, question, style);
    questions(view).iter().map(text).collect()
}

fn workspace(view: &SessionView) -> String {
    let member = |name: &str| view.other.get(name).filter(|value| !value.is_null());
    match (member("sandboxId"), member("sandbox")) {
        (Some(id), _) => visible(id.as_str().unwrap_or("shared")),
        (None, Some(spec)) => {
            let source = member("sandboxSource").and_then(Value::as_str).unwrap_or("own");
            let of = member("sandboxOwnerId").and_then(Value::as_str).map(|id| format!(" of session {}", visible(id)));
            format!("{}{} {}", visible(source), of.unwrap_or_default(), one_line(&spec.to_string(), 80))
        }
        (None, None) => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_uncertain_session_says_how_to_settle() {
        let view = json!({"id": "s1", "agentId": "a", "ownerUserId": "me", "manifestHash": "0123456789abcdef",
            "implementationVersion": "dev", "status": "uncertain", "activeTurnId": "t1", "sandbox": {"kind": "virtual"},
            "sandboxSource": "default", "sandboxOwnerId": null,
            "uncertainEffects": [{"effectId": "e1", "turnId": "t1", "kind": "tool", "error": "its answer was lost"}]});
        let expected = "\
session    s1
agent      a, version dev, manifest 0123456789a…
owner      me
status     uncertain
turn       t1
workspace  default {\"kind\":\"virtual\"}

It is unknown whether this happened: bash sleep 30
(its answer was lost)
Look whether it did, then say so, and the turn goes on:
  nylorun session settle s1 e1 …
    --value JSON   it happened, with this result
    --error TEXT   it failed, or did not happen and shall not
    --retry        it did not happen, or may happen twice: run it again
";
        let calls = HashMap::from([("e1".to_owned(), "bash sleep 30".to_owned())]);
        assert_eq!(told(&serde_json::from_value(view).unwrap(), &calls, &Style::plain()), expected);
    }

    #[test]
    fn a_shared_workspace_names_the_session_that_owns_it() {
        let view = json!({"id": "s2", "agentId": "a", "ownerUserId": "me", "manifestHash": "h",
            "implementationVersion": "dev", "status": "idle", "activeTurnId": null, "sandbox": {"idle": "15m"},
            "sandboxSource": "shared", "sandboxOwnerId": "s1", "uncertainEffects": []});
        assert_eq!(workspace(&serde_json::from_value(view).unwrap()), "shared of session s1 {\"idle\":\"15m\"}");
    }
}
