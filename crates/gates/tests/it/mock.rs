//! Every adapter against a mock of providers that others wrote: `scripts/test-mock-provider` starts it.

use std::sync::Arc;

use nylorun_domain::json::Text;
use nylorun_domain::model::{FinishReason, ModelFailureCode, OutputPart, PromptItem};
use nylorun_ports::models::ProviderAccess;

use crate::support::{
    ask_as, assistant, completed, deltas_of, failed, image, json, output, prompt, provider, tool, tool_call,
    tool_result, user,
};

/// The mock's endpoints, one for each provider. It answers as OpenRouter and as Google under their own paths.
fn endpoints(test: &str) -> Vec<ProviderAccess> {
    match std::env::var("NYLORUN_TEST_AIMOCK_URL") {
        Ok(url) => {
            let root = url.trim_end_matches("/v1");
            vec![
                provider(&url, "custom", "deepseek-reasoner"),
                provider(&url, "anthropic", "claude-haiku-4-5"),
                provider(&url, "openai", "gpt-5-mini"),
                provider(&format!("{root}/v1beta"), "google", "gemini-2.5-flash"),
                provider(&format!("{root}/api/v1"), "openrouter", "deepseek/deepseek-v3.2"),
            ]
        }
        Err(_) => {
            println!("{test}: skipped, since NYLORUN_TEST_AIMOCK_URL is not set: run scripts/test-mock-provider");
            Vec::new()
        }
    }
}

#[tokio::test]
async fn a_text_streams() {
    for access in endpoints("a_text_streams") {
        let asked = ask_as(access, prompt(vec![user("say hello")])).await;
        let deltas = deltas_of(&asked);
        let candidate = completed(asked);
        let text = "Hello, wörld 𝄞. This text is long enough for several pieces.";
        assert_eq!((candidate.text(), candidate.finish), (Text::from(text), FinishReason::Stop));
        assert!(deltas.len() > 1, "{deltas:?}");
        assert_eq!(deltas.concat(), text);
    }
}

#[tokio::test]
async fn thinking_is_read_and_said_again() {
    for access in endpoints("thinking_is_read_and_said_again") {
        let asked = vec![user("think first")];
        let candidate = completed(ask_as(access.clone(), prompt(asked.clone())).await);
        let thought = candidate.parts.iter().find_map(|part| match part {
            OutputPart::Reasoning { text, .. } => Some(text.clone()),
            OutputPart::Text(_) | OutputPart::ToolCall(_) => None,
        });
        assert_eq!((thought, candidate.text()), (Some(Text::from("Let me see.")), Text::from("Thought.")));
        let again = [asked, vec![assistant(candidate.model, candidate.parts), user("say hello")]].concat();
        completed(ask_as(access, prompt(again)).await);
    }
}

#[tokio::test]
async fn a_turn_with_two_parallel_tools() {
    for access in endpoints("a_turn_with_two_parallel_tools") {
        let mut asked = prompt(vec![user("list files")]);
        asked.tools = vec![tool("bash", r#"{"type":"object"}"#), tool("glob", r#"{"type":"object"}"#)];
        let candidate = completed(ask_as(access.clone(), asked.clone()).await);
        let calls: Vec<_> = candidate.tool_calls().cloned().collect();
        let [first, second] = calls.as_slice() else { panic!("{candidate:?}") };
        let (first, second) = (first.call_id.as_str(), second.call_id.as_str());
        let expected = [
            OutputPart::Text("I look in two places.".into()),
            tool_call(first, "bash", json(r#"{"command":"ls"}"#)),
            tool_call(second, "glob", json(r#"{"pattern":"**/*"}"#)),
        ];
        // The mock lets OpenAI's models reason unasked.
        let is_said = |part: &&OutputPart| !matches!(part, OutputPart::Reasoning { .. });
        let said: Vec<_> = candidate.parts.iter().filter(is_said).cloned().collect();
        assert_eq!((said.as_slice(), candidate.finish), (expected.as_slice(), FinishReason::ToolCalls));
        assert_ne!(first, second);

        let results = [(first, "bash"), (second, "glob")];
        let results = results.map(|(id, name)| tool_result(id, name, output(r#"{"exitCode":0}"#))).to_vec();
        let assistant = assistant(candidate.model.clone(), candidate.parts.clone());
        asked.items.extend([assistant, PromptItem::ToolResults(results)].map(Arc::new));
        assert_eq!(completed(ask_as(access, asked).await).text(), Text::from("There is one file."));
    }
}

#[tokio::test]
async fn limits_and_cut_streams_are_failures_that_may_pass() {
    for access in endpoints("limits_and_cut_streams_are_failures_that_may_pass") {
        let limited = failed(ask_as(access.clone(), prompt(vec![user("too often")])).await);
        assert_eq!((limited.code, limited.retryable), (ModelFailureCode::RateLimited, true));
        assert_eq!(limited.message, "HTTP 429: Rate limit reached");
        let cut = failed(ask_as(access, prompt(vec![user("cut off")])).await);
        assert_eq!((cut.code, cut.retryable), (ModelFailureCode::Transient, true));
    }
}

#[tokio::test]
async fn what_the_mock_does_not_know_is_refused() {
    for access in endpoints("what_the_mock_does_not_know_is_refused") {
        let failure = failed(ask_as(access, prompt(vec![user("something else entirely")])).await);
        assert_eq!(failure.code, ModelFailureCode::Overloaded, "{failure:?}");
    }
}

#[tokio::test]
async fn what_is_used_is_counted_and_a_picture_is_taken() {
    for access in endpoints("what_is_used_is_counted_and_a_picture_is_taken") {
        let provider = access.provider.clone();
        let reads_images = provider != "openrouter";
        let parts = if reads_images { vec![image(), "count tokens".into()] } else { vec!["count tokens".into()] };
        let usage = completed(ask_as(access, prompt(vec![PromptItem::User(parts)])).await).usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.total), (11, 4, 15), "{provider}");
    }
}
