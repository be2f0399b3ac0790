//! Answers of HTTP tools, and the schemas that manifests give for them.

use nylorun_domain::json::{Json, parse};
use nylorun_gates::recorded::read_tool_answer;

use super::lines;

/// JSON is kept as it was written, text becomes a string of itself, and a schema that accepts everything changes
/// nothing.
pub(super) fn tools(input: &[u8]) {
    let ([content_type, schema], body) = lines::<2>(input);
    let content_type = std::str::from_utf8(content_type).ok().filter(|text| !text.is_empty());
    let Some(plain) = read_tool_answer(content_type, body, None) else { panic!("no schema is always usable") };
    if let Ok(output) = &plain {
        let text = String::from_utf8_lossy(body);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        assert!(parse(output.as_str()).is_ok());
        let is_kept = output.as_str() == text.trim_matches([' ', '\t', '\n', '\r']);
        let is_quoted = *output == Json::string(text);
        assert!(is_kept || is_quoted || text.trim().is_empty());
    }
    let anything = read_tool_answer(content_type, body, Some(&Json::from_trusted("{}")));
    let Some(schema) = std::str::from_utf8(schema).ok().and_then(|text| Json::parse(text).ok()) else { return };
    match (read_tool_answer(content_type, body, Some(&schema)), anything) {
        (Some(Ok(output)), anything) => assert_eq!(Some(Ok(output)), anything, "a schema only refuses"),
        (Some(Err(code)), _) => assert!(["tool.invalid-output", "http.invalid-response"].contains(&code)),
        (None, _) => {}
    }
}
