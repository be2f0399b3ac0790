//! The parser, the printers and RFC 8785's vectors.

use nylorun_domain::json::{
    Document, Json, MAX_DEPTH, Node, Text, element_of, member_of, parse, utf16_len, utf16_prefix,
};

#[test]
fn a_document_is_kept_byte_for_byte() {
    for text in [
        r#"{ "b" : [1.0, 1E+2, -0],  "a":"\u0041\/" }"#,
        r#""\ud800""#,
        r#""\udc00\ud800\u0000 \u0000""#,
        r#"{"\ud800":1,"\udc00":{"\u0000":""}}"#,
        "\"\u{7f}\u{2028}é😀\"",
        "null",
    ] {
        assert_eq!(Json::parse(text).map(|json| json.as_str().to_owned()), Ok(text.to_owned()));
    }
    assert_eq!(Json::parse(" \n1\t\r").expect("valid").as_str(), "1");
}

#[test]
fn a_value_prints_as_javascript_would() {
    for (text, printed) in [
        (r#"{ "b" : [1.0, 1E+2, -0],  "a":"\u0041\/" }"#, r#"{"b":[1.0,1E+2,-0],"a":"A/"}"#),
        (r#""\ud83d\ude00 \uD800 \udc00x""#, r#""😀 \ud800 \udc00x""#),
        (r#""\ud800\ud83d\ude00""#, r#""\ud800😀""#),
        (r#""\ud800\u0041""#, r#""\ud800A""#),
        (r#""\ud800\n\\""#, r#""\ud800\n\\""#),
        (r#""\b\f\n\r\t\u0000\u001f\u007f\"\\""#, "\"\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\\\"\\\\\""),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
    ] {
        assert_eq!(parse(text).expect("valid").to_json().as_str(), printed, "{text}");
    }
}

#[test]
fn the_last_of_equal_names_wins_in_large_objects_too() {
    let members: String = (0..40).map(|n| format!("\"k{n}\":{n},")).collect();
    let value = parse(&format!("{{{members}\"k3\":\"new\",\"k39\":\"last\",\"\\u006b20\":null}}")).expect("valid");
    assert_eq!(value.as_object().map(<[_]>::len), Some(40));
    assert_eq!(value.get("k3").and_then(|v| v.as_str()), Some("new"));
    assert_eq!(value.get("k39").and_then(|v| v.as_str()), Some("last"));
    assert_eq!(value.get("k20").map(|v| v.to_json().as_str().to_owned()), Some("null".to_owned()));
    assert_eq!(value.get("k21").and_then(|v| v.as_i64()), Some(21));
}

#[test]
fn a_document_is_looked_into_in_its_place() {
    let text =
        r#" { "a" : [1.0, {"b":"}"}] ,"k":1, "\u006b":"\ud83d\ude00", "s":"\ud800", "n":9007199254740993,"k2":-0.5} "#;
    let document = Document::parse(text).expect("valid");
    let get = |name| document.root().get(name);
    assert_eq!(get("a").map(Node::as_written), Some(r#"[1.0, {"b":"}"}]"#));
    let elements: Vec<_> = get("a").and_then(Node::elements).expect("an array").collect();
    assert_eq!((elements.len(), elements[0].as_i64(), elements[1].as_i64()), (2, Some(1), None));
    assert_eq!(elements[1].get("b").and_then(Node::as_str).as_deref(), Some("}"));
    assert_eq!(get("k").and_then(Node::as_str).as_deref(), Some("😀"), "the last of equal names");
    assert_eq!(get("s").and_then(Node::as_text), Some(Text::from_utf16(vec![0xd800])));
    assert_eq!(get("s").and_then(Node::as_str), None, "no UTF-8");
    assert_eq!(get("n").and_then(Node::as_i64), Some(9_007_199_254_740_993), "more than a double holds");
    assert_eq!(get("k2").and_then(Node::as_i64), None);
    assert!(get("b").is_none() && get("a").and_then(|a| a.get("b")).is_none());
    assert!(document.root().elements().is_none());
}

#[test]
fn what_is_not_json_is_refused_where_it_goes_wrong() {
    for (text, problem, offset) in [
        ("", "unexpected end", 0),
        ("[1,]", "unexpected character", 3),
        ("[1 2]", "expected ',' or ']'", 3),
        ("{\"a\" 1}", "expected ':'", 5),
        ("{\"a\":1,}", "expected a name", 7),
        ("{a:1}", "expected a name", 1),
        ("{\"a\":1", "expected ',' or '}'", 6),
        ("01", "unexpected text after the value", 1),
        ("-", "expected a digit", 1),
        ("1.", "expected a digit", 2),
        ("1e+", "expected a digit", 3),
        ("+1", "unexpected character", 0),
        ("NaN", "unexpected character", 0),
        ("tru", "unexpected character", 0),
        ("\"abc", "unterminated string", 4),
        ("\"ab\\", "unknown escape", 4),
        ("\"\\x\"", "unknown escape", 2),
        ("\"\\u12g4\"", "expected four hexadecimal digits", 3),
        ("\"\\u123", "expected four hexadecimal digits", 3),
        ("\"\\ud800\\u12\"", "expected four hexadecimal digits", 9),
        ("\"a\nb\"", "control character in a string", 2),
        ("\"\\n\u{1}\"", "control character in a string", 3),
        ("1 1", "unexpected text after the value", 2),
        ("\u{feff}1", "unexpected character", 0),
        ("\u{a0}1", "unexpected character", 0),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!((error.problem, error.offset), (problem, offset), "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert_eq!(MAX_DEPTH, 128);
    assert!(parse(&arrays(128)).is_ok());
    assert!(parse(&objects(128)).is_ok());
    for text in [arrays(129), objects(129), "[".repeat(1_000_000), "{\"a\":".repeat(200_000)] {
        assert_eq!(parse(&text).expect_err("too deep").problem, "nested deeper than 128 levels");
    }
}

#[test]
fn numbers_print_as_in_appendix_b_of_rfc_8785() {
    for (bits, printed) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        let written = format!("{:e}", f64::from_bits(bits));
        assert_eq!(parse(&written).expect("a number").canonical(), printed, "{written}");
    }
    // What no double holds is null, as JSON.stringify prints infinity.
    assert_eq!(parse("[1e999,-1e999,1e-999]").expect("valid").canonical(), "[null,null,0]");
}

#[test]
fn canonical_form_is_that_of_rfc_8785() {
    let sample = r#"{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"#;
    let canonical = concat!(
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(Json::parse(sample).expect("valid").canonical(), canonical);

    let keys = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
        "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",
        "\ud83d":"half an emoji"}"#;
    let canonical = parse(keys).expect("valid").canonical();
    let values: Vec<_> = canonical.split('"').skip(3).step_by(4).collect();
    assert_eq!(
        values,
        [
            "Carriage Return",
            "One",
            "Control",
            "Latin Small Letter O With Diaeresis",
            "Euro Sign",
            "half an emoji",
            "Emoji: Grinning Face",
            "Hebrew Letter Dalet With Dagesh",
        ]
    );
    assert_eq!(
        Json::parse(r#"{"b":1.0,"a":"x"}"#).expect("valid").canonical_sha256(),
        "cdab067e9f3beb32d1252cfd63e492592fecbf591b0d08cadb24bb17f3864246".to_owned(),
    );
}

#[test]
fn whole_numbers_are_those_that_a_double_holds() {
    for (text, whole) in [
        ("3", Some(3)),
        ("3.0", Some(3)),
        ("3e2", Some(300)),
        ("-0", Some(0)),
        ("3.5", None),
        ("9007199254740991", Some(9_007_199_254_740_991)),
        ("9007199254740993", None),
        ("1e400", None),
    ] {
        assert_eq!(parse(text).expect("valid").as_i64(), whole, "{text}");
    }
}

#[test]
fn lengths_are_utf16_units() {
    for (text, length) in [("", 0), ("abc", 3), ("é", 1), ("€", 1), ("😀", 2), ("a😀é", 4)] {
        assert_eq!(utf16_len(text), length, "{text}");
        assert_eq!(Text::from(text).utf16_len(), length, "{text}");
    }
    assert_eq!(parse(r#""\ud800😀""#).expect("valid").as_text().map(Text::utf16_len), Some(3));
    let prefixes = [0, 1, 2, 3, 4, 9].map(|units| utf16_prefix("a😀é", units));
    assert_eq!(prefixes, ["", "a", "a", "a😀", "a😀é", "a😀é"]);
}

#[test]
fn parts_are_found_in_the_text_as_written() {
    let text = r#" {"a" : [ 1.0, {"x]\"":"}"} , "é\\" ], "b":2, "\u0061" : { "c" : 1e2 } , "d":[]} "#;
    assert_eq!(member_of(text, "a"), Some(r#"{ "c" : 1e2 }"#));
    assert_eq!(member_of(text, "b"), Some("2"));
    assert_eq!(member_of(text, "d"), Some("[]"));
    assert_eq!(member_of(text, "c"), None);
    assert_eq!(member_of("[1]", "c"), None);
    let list = r#"[ 1.0, {"x]\"":"}"} , "é\\" ]"#;
    assert_eq!(
        [0, 1, 2, 3].map(|at| element_of(list, at)),
        [Some("1.0"), Some(r#"{"x]\"":"}"}"#), Some(r#""é\\""#), None]
    );
}
