//! The strict reader.

use nylorun_domain::check::{
    Document, Found, MAX_PROBLEMS, Path, Place, ProblemCode, Problems, Step, TextRule, check, check_at,
};
use nylorun_domain::id::SessionId;
use nylorun_domain::json::{Json, parse};

use crate::{assert_problems, lines};

fn problems<T: std::fmt::Debug>(text: &str, read: impl FnOnce(Place<'_>) -> Option<T>) -> Problems {
    check(&parse(text).expect("valid"), read).expect_err("problems")
}

#[test]
fn every_kind_of_value_says_what_was_expected() {
    type Reader = fn(Place<'_>) -> Option<()>;
    let table: [(&str, Reader, &str); 20] = [
        ("1", |p| p.object().map(|o| o.finish()), "invalid_type : Invalid input: expected object, received number"),
        ("null", |p| p.object_json().map(drop), "invalid_type : Invalid input: expected object, received null"),
        ("[]", |p| p.text(TextRule::ANY).map(drop), "invalid_type : Invalid input: expected string, received array"),
        (
            "\"\"",
            |p| p.text(TextRule::NON_EMPTY).map(drop),
            "too_small : Too small: expected string to have >=1 characters",
        ),
        (
            "\"a😀\"",
            |p| p.text(TextRule::length(0, 2)).map(drop),
            "too_big : Too big: expected string to have <=2 characters",
        ),
        (
            "\"\\ud800\"",
            |p| p.string(TextRule::ANY).map(drop),
            "invalid_format : Invalid string: must not hold lone surrogates",
        ),
        (
            "\"a\\u0000\"",
            |p| p.string(TextRule::ID).map(drop),
            "invalid_format : Invalid string: expected a string without",
        ),
        (
            "\"\\ud800\"",
            |p| p.text(TextRule::ID).map(drop),
            "invalid_format : Invalid string: expected a string without",
        ),
        ("\"\"", |p| p.parsed(SessionId::parse).map(drop), "too_small : must not be empty"),
        ("\"\\n\"", |p| p.parsed(SessionId::parse).map(drop), "invalid_format : must not hold control characters"),
        ("\"x\"", |p| p.one_of(&[1], |_| "y").map(drop), "invalid_value : Invalid input: expected \"y\""),
        (
            "3",
            |p| p.one_of(&[1, 2], |n| ["a", "b"][n - 1]).map(drop),
            "invalid_value : Invalid option: expected one of \"a\"|\"b\"",
        ),
        ("0", |p| p.boolean().map(drop), "invalid_type : Invalid input: expected boolean, received number"),
        ("true", |p| p.integer(1..=2).map(drop), "invalid_type : Invalid input: expected number, received boolean"),
        ("1.5", |p| p.integer(1..=2).map(drop), "invalid_type : Invalid input: expected int, received number"),
        ("0", |p| p.integer(1..=2).map(drop), "too_small : Too small: expected number to be >=1"),
        ("3", |p| p.integer(1..=2_u8).map(drop), "too_big : Too big: expected number to be <=2"),
        ("{}", |p| p.list(Place::json).map(drop), "invalid_type : Invalid input: expected array, received object"),
        ("[]", |p| p.list_of(1..=2, Place::json).map(drop), "too_small : Too small: expected array to have >=1 items"),
        (
            "{\"a\":1}",
            |p| p.map_of(2..=3, |_, v| v.json()).map(drop),
            "too_small : Too small: expected object to have >=2 entries",
        ),
    ];
    for (text, read, expected) in table {
        assert_problems(&problems(text, read), &[expected]);
    }
}

#[test]
fn good_values_are_given() {
    let text = r#"{"id":"s1","n":3.0,"flag":false,"list":["a","b"],"map":{"x":1,"y":2},"any":{"z":[1.50]}}"#;
    let read = check(&parse(text).expect("valid"), |place| {
        let object = place.object()?;
        let id = object.required("id", |place| place.parsed(SessionId::parse));
        let n = object.optional("n", |place| place.integer(1..=3_u32));
        let flag = object.optional("flag", Place::boolean);
        let list = object.optional("list", |place| place.list(|item| item.string(TextRule::ANY)));
        let map = object.optional("map", |place| place.map(|_, item| item.integer(0..=9_i64)));
        let any = object.required("any", Place::object_json);
        let missing = object.optional("missing", Place::boolean);
        object.finish();
        Some((id?.to_string(), n, flag, list, map, any?.to_string(), missing))
    });
    let expected = (
        "s1".to_owned(),
        Some(3),
        Some(false),
        Some(vec!["a".to_owned(), "b".to_owned()]),
        Some(vec![("x".to_owned(), 1), ("y".to_owned(), 2)]),
        r#"{"z":[1.50]}"#.to_owned(),
        None,
    );
    assert_eq!(read, Ok(expected));
}

#[test]
fn members_are_required_refused_and_grouped() {
    let read = |place: Place<'_>| {
        let object = place.object()?;
        object.required_string("id", TextRule::ID);
        object.optional_string("name", TextRule::NON_EMPTY);
        object.refuse("old", "gone");
        object.exactly_one_of(&["content", "data", "parts"]);
        object.at_most_one_of(&["a", "b"]);
        for name in ["content", "data", "parts", "a", "b"] {
            object.get(name);
        }
        object.finish();
        Some(())
    };
    assert_problems(
        &problems(r#"{"name":null,"old":1,"a":1,"b":2,"x":1,"y\ud800":2}"#, read),
        &[
            "invalid_type id: Invalid input: required, received undefined",
            "invalid_type name: Invalid input: expected string, received null",
            "custom old: gone",
            "invalid_union : Exactly one of content, data or parts must be given",
            "invalid_union : At most one of a or b may be given",
            "unrecognized_keys : Unrecognized keys: \"x\", \"y\u{fffd}\"",
        ],
    );
    assert_problems(
        &problems(r#"{"id":"a","content":1,"parts":2}"#, read),
        &["invalid_union : Exactly one of content, data or parts must be given"],
    );
    assert_eq!(check(&parse(r#"{"id":"a","data":null}"#).expect("valid"), read), Ok(()));
}

#[test]
fn problems_are_bounded() {
    let many = format!("[{}1]", "1,".repeat(999));
    let problems = problems(&many, |place| place.list(|item| item.string(TextRule::ANY)));
    assert_eq!((problems.len(), problems.iter().count()), (1_000, MAX_PROBLEMS));
    assert!(
        problems
            .to_json_text()
            .ends_with(r#"{"code":"custom","path":[],"message":"900 more problems are not listed"}]"#)
    );

    let unknown: String = (0..1_000).map(|n| format!("\"{}{n}\":1,", "x".repeat(300))).collect();
    let problems =
        self::problems(&format!("{{{unknown}\"z\":1}}"), |place| place.object().map(|object| object.finish()));
    assert_eq!(problems.len(), 1);
    assert!(lines(&problems)[0].len() < 1_500 && lines(&problems)[0].ends_with("and 991 more"));

    let name = "n".repeat(10_000);
    let problems = self::problems(&format!("{{\"{name}\":1}}"), |place| place.map(|_, item| item.boolean()));
    assert!(problems.to_json_text().len() < 1_000);
}

#[test]
fn problems_append_within_their_bound() {
    let part = |count: usize| {
        let mut problems = Problems::default();
        (0..count).for_each(|_| problems.add(ProblemCode::Custom, &Path::ROOT, "wrong"));
        problems
    };
    let mut all = part(60);
    all.append(part(60));
    all.append(part(5));
    assert_eq!((all.len(), all.iter().count()), (125, MAX_PROBLEMS));
}

#[test]
fn a_path_prefix_stands_before_every_path() {
    let path = Path::ROOT;
    let path = path.name("manifest");
    let found = check_at(&parse("[1]").expect("valid"), path, |place| place.list(Place::boolean)).expect_err("wrong");
    assert_eq!(
        found.to_json_text(),
        concat!(
            r#"[{"code":"invalid_type","path":["manifest",0],"#,
            r#""message":"Invalid input: expected boolean, received number"}]"#
        )
    );
}

#[test]
fn content_is_given_as_it_was_written() {
    let text = r#" { "data" : { "a" : [ 1.0 , "\u0041" ] } , "parts":[ 1, {"b" :2} ] } "#;
    let document = Document::parse(text).expect("valid");
    let read = document.check(|place| {
        let object = place.object()?;
        let data = object.required("data", Place::raw);
        let parts = object.required("parts", |place| place.list(Place::raw));
        object.finish();
        Some((data?, parts?))
    });
    let json = |text: &str| Json::from_trusted(text);
    assert_eq!(read, Ok((json(r#"{ "a" : [ 1.0 , "\u0041" ] }"#), vec![json("1"), json(r#"{"b" :2}"#)])));
    assert_eq!(document.check(|place| place.raw()), Ok(json(text.trim())));
    // Without the text, the value is printed.
    assert_eq!(check(document.value(), |p| p.object()?.required("data", Place::raw)), Ok(json(r#"{"a":[1.0,"A"]}"#)));
}

#[test]
fn what_stands_at_a_path_is_found_with_its_line() {
    let document = Document::parse("\n{\"a\": [1,\n  {\"b\": \"x\"}],\n\"c\": 2}").expect("valid");
    let find = |path: &[Step]| document.find(path);
    let (a, b, c) = (Step::from("a"), Step::from("b"), Step::from("c"));
    assert_eq!(find(&[c]), Found { line: 4, value: Some("2") });
    assert_eq!(find(&[a.clone(), Step::from(1), b.clone()]), Found { line: 3, value: Some("\"x\"") });
    assert_eq!(find(&[a.clone(), Step::from(1), a.clone(), b]), Found { line: 3, value: None }, "it is missing");
    assert_eq!(find(&[a, Step::from(7)]), Found { line: 2, value: None });
    assert_eq!(find(&[]).line, 2);
}
