//! Reading a catalogue file: every problem is told with its line, its member and the value that is there.

use nylorun_domain::check::{Document, Object, Place, Problem, TextRule};
use nylorun_domain::json::Value;

use super::{Catalogue, CatalogueError, LongPrompt, Model, Price, Provider, ReasoningWords};
use crate::providers::Api;

/// Largest count of tokens: what every JSON reader holds exactly.
const MAX_TOKENS: i64 = 9_007_199_254_740_991;
/// How many characters of a wrong value are shown.
const SHOWN: usize = 60;

/// Reads the text of a catalogue.
///
/// # Errors
/// It is no JSON, or not of the catalogue's shape.
pub(super) fn read(text: &str) -> Result<Catalogue, CatalogueError> {
    let document = Document::parse(text).map_err(|error| {
        let before = text.get(..error.offset).unwrap_or(text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        CatalogueError::NotJson { line, column, problem: error.problem }
    })?;
    let told = |problem: &Problem| told(&document, problem);
    document.check(catalogue).map_err(|problems| CatalogueError::Wrong(problems.iter().map(told).collect()))
}

/// `line 4: providers.0.models.0.maxTokens: Too small: expected number to be >=1; it is 0`
fn told(document: &Document<'_>, problem: &Problem) -> String {
    let found = document.find(&problem.path);
    let value = match found.value {
        Some(text) if !text.starts_with(['{', '[']) => {
            let shown: String = text.chars().take(SHOWN).collect();
            format!("; it is {shown}{}", if shown.len() < text.len() { "…" } else { "" })
        }
        Some(_) | None => String::new(),
    };
    format!("line {}: {problem}{value}", found.line)
}

fn catalogue(place: Place<'_>) -> Option<Catalogue> {
    let file = place.object()?;
    let providers = file.required("providers", |place| place.list(provider));
    file.finish();
    Some(Catalogue { providers: providers? })
}

fn provider(place: Place<'_>) -> Option<Provider> {
    let object = place.object()?;
    let id = object.required("id", provider_id);
    let name = optional(&object, "name", string);
    let models = object.required("models", |place| place.list(model));
    object.finish();
    Some(Provider { id: id?, name: name.unwrap_or_default(), models: models? })
}

fn provider_id(place: Place<'_>) -> Option<String> {
    let id = string(place)?;
    if Api::of(&id).is_none() {
        place
            .custom("this version cannot call this provider: expected anthropic, openai, google, openrouter or custom");
        return None;
    }
    Some(id)
}

fn model(place: Place<'_>) -> Option<Model> {
    let object = place.object()?;
    let id = object.required("id", |place| place.string(TextRule::NON_EMPTY));
    let name = object.required("name", string);
    let context_window = object.required("contextWindow", tokens);
    let max_tokens = object.required("maxTokens", tokens);
    let images = optional(&object, "images", |place| place.boolean());
    let reasoning = optional(&object, "reasoning", reasoning);
    let price = optional(&object, "price", Price::read);
    let long_prompt = optional(&object, "longPrompt", long_prompt);
    object.finish();
    Some(Model {
        id: id?,
        name: name?,
        context_window: context_window?,
        max_tokens: max_tokens?,
        images: images.unwrap_or_default(),
        reasoning,
        price,
        long_prompt,
    })
}

fn reasoning(place: Place<'_>) -> Option<ReasoningWords> {
    let object = place.object()?;
    let (on, off) = (optional(&object, "on", string), optional(&object, "off", string));
    object.finish();
    Some(ReasoningWords { on, off })
}

fn long_prompt(place: Place<'_>) -> Option<LongPrompt> {
    let object = place.object()?;
    let above = object.required("above", tokens);
    let price = object.required("price", Price::read);
    object.finish();
    Some(LongPrompt { above: above?, price: price? })
}

fn string(place: Place<'_>) -> Option<String> {
    place.string(TextRule::ANY)
}

fn tokens(place: Place<'_>) -> Option<i64> {
    place.integer(1..=MAX_TOKENS)
}

/// A member that may be missing or null.
pub(super) fn optional<T>(object: &Object<'_>, name: &str, read: impl FnOnce(Place<'_>) -> Option<T>) -> Option<T> {
    object.get(name).filter(|place| *place.value() != Value::Null).and_then(read)
}

#[cfg(test)]
mod tests {
    use super::super::{Catalogue, CatalogueError};

    fn problems(text: &str) -> String {
        Catalogue::load(Some(text)).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_told_with_line_member_and_value() {
        let model = |body: &str| {
            let model = format!(r#"{{"id": "a", "name": "A", {body}}}"#);
            format!("{{\"providers\": [\n{{\"id\": \"anthropic\", \"models\": [\n{model}]}}]}}")
        };
        let number = "Too small: expected number to be >=1";
        for (body, expected) in [
            (r#""contextWindow":0,"maxTokens":1"#, format!("contextWindow: {number}; it is 0")),
            (
                r#""contextWindow":"1","maxTokens":1"#,
                "contextWindow: Invalid input: expected number, received string; it is \"1\"".to_owned(),
            ),
            (r#""contextWindow":9"#, "maxTokens: Invalid input: required, received undefined".to_owned()),
            (
                r#""contextWindow":9,"maxTokens":1,"price":{"input":-1,"output":1}"#,
                "price.input: Too small: expected number to be >=0; it is -1".to_owned(),
            ),
            (
                r#""contextWindow":9,"maxTokens":1,"price":{"input":1,"output":1e7}"#,
                "price.output: Too big: expected number to be <=1000000; it is 1e7".to_owned(),
            ),
            (
                r#""contextWindow":9,"maxTokens":1,"longPrompt":{"above":0,"price":{"input":1,"output":1}}"#,
                format!("longPrompt.above: {number}; it is 0"),
            ),
        ] {
            assert_eq!(problems(&model(body)), format!("line 3: providers.0.models.0.{expected}"), "{body}");
        }
        let unknown = problems(&model(r#""contextWindow":9,"maxTokens":1,"window":1"#));
        assert_eq!(unknown, "line 3: providers.0.models.0: Unrecognized key: \"window\"");
        let nobody = problems("{\"providers\":\n[{\"id\":\"nobody\",\"models\":[]}]}");
        assert!(nobody.starts_with("line 2: providers.0.id: this version cannot call this provider"), "{nobody}");
        assert!(nobody.ends_with("it is \"nobody\""), "{nobody}");
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let text = "{\"providers\": [{\"id\": 1, \"models\": 2}],\n\"more\": true}";
        let Err(CatalogueError::Wrong(problems)) = Catalogue::load(Some(text)) else { panic!("it is wrong") };
        assert_eq!(problems.len(), 3, "{problems:?}");
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        assert_eq!(problems("{\"providers\":\n  x}"), "line 2, column 3: not JSON: unexpected character");
        assert!(problems("").starts_with("line 1, column 1: not JSON: "));
    }

    #[test]
    fn null_is_as_good_as_missing_where_a_member_may_be_missing() {
        let text = r#"{"providers":[{"id":"openai","name":null,"models":[{
            "id":"m","name":"M","contextWindow":1e3,"maxTokens":9,
            "reasoning":null,"price":null,"longPrompt":null}]}]}"#;
        let catalogue = Catalogue::load(Some(text)).unwrap();
        assert_eq!(catalogue.model("openai", "m").unwrap().context_window, 1_000);
    }
}
