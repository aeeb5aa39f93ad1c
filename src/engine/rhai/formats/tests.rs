//! Texts against other parsers of the same formats, and hostile texts against the limits.

use std::process::Command;

use serde_json::{Value, json};

use super::*;
use crate::test_support::needs;

fn limits() -> RhaiLimits {
    RhaiLimits {
        array_len_max: 100,
        map_len_max: 100,
        string_size_max: 10_000,
        ..Default::default()
    }
}

fn yaml(text: &str) -> Value {
    let value = yaml::parse(text, &limits()).unwrap_or_else(|error| panic!("{text}: {error}"));
    to_json(&value).expect("JSON")
}

#[test]
fn json_is_read_as_a_json_parser_reads_it() {
    for text in [
        "null",
        "[true, false, 1, -1, 0, 1.5, -0.0, 1e3, 1E-2]",
        r#"{"a": {"b": [1, {"c": null}]}, "ä": "\u00e4\n\"\\", "": ""}"#,
        r#"{"a": 1, "a": 2}"#,
        "9223372036854775807",
        "-9223372036854775808",
        "  [ ]  ",
    ] {
        let expected: Value = serde_json::from_str(text).expect(text);
        let value = json::parse(text, &limits()).expect(text);
        assert_eq!(to_json(&value).expect("JSON"), expected, "{text}");
    }
    let large = json::parse("18446744073709551615", &limits()).expect("a number");
    assert_eq!(large.as_float(), Ok(18_446_744_073_709_551_615.0));
}

#[test]
fn toml_is_read_as_a_toml_parser_reads_it() {
    let text = "title = 'x'\nn = 0x10\nf = 1.5\non = true\nlist = [1, [2, 'a']]\nd = 2026-01-31\n\
                [a.b]\nc = \"\"\"\nmore\"\"\"\n[[t]]\nx = 1\n[[t]]\nx = 2\n";
    let map = toml_text::parse(text, &limits()).expect("a map");
    assert_eq!(
        to_json(&map.into()).expect("JSON"),
        json!({
            "title": "x", "n": 16, "f": 1.5, "on": true, "list": [1, [2, "a"]], "d": "2026-01-31",
            "a": {"b": {"c": "more"}}, "t": [{"x": 1}, {"x": 2}],
        })
    );
    for (text, expected) in [
        ("a = 1\nb = \n", "line 2: "),
        ("a = 1\na = 2", "line 2: duplicate key"),
        ("\n\n[x\n", "line 3: "),
    ] {
        let error = toml_text::parse(text, &limits()).expect_err(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn yaml_scalars_have_the_types_of_the_core_schema() {
    for (text, expected) in [
        ("", json!(null)),
        ("# nothing", json!(null)),
        ("~", json!(null)),
        ("[null, Null, ~]", json!([null, null, null])),
        ("[true, False, yes, on, 'true']", json!([true, false, "yes", "on", "true"])),
        ("[1, -1, +1, 007, 0x1F, 0o17]", json!([1, -1, 1, 7, 31, 15])),
        ("[1.5, -.5, 1e3, 1., 5e-1]", json!([1.5, -0.5, 1000.0, 1.0, 0.5])),
        (
            "[1_000, 0x, e5, '1', \"2\", 1.2.3, 12:30, inf]",
            json!(["1_000", "0x", "e5", "1", "2", "1.2.3", "12:30", "inf"]),
        ),
        ("[2026-01-31, 9223372036854775808]", json!(["2026-01-31", 9_223_372_036_854_775_808.0])),
        ("[!!str 1, !!int '2', !!float 3, !!str , ! 4]", json!(["1", 2, 3.0, "", "4"])),
        ("[.inf, -.INF, .nan]", json!([null, null, null])),
        ("|\n  a\n  b\n", json!("a\nb\n")),
        ("a: >-\n  b\n  c\n", json!({"a": "b c"})),
        ("80: a\ntrue: b\n'x y': c", json!({"80": "a", "true": "b", "x y": "c"})),
        ("- a\n- - b\n  - c: d\n", json!(["a", ["b", {"c": "d"}]])),
        ("a: &x [1]\nb: *x\n", json!({"a": [1], "b": [1]})),
        ("&k a: 1\n*k : 2\n", json!(null)),
        (
            "x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 0}",
            json!({"x": {"a": 1, "b": 2}, "y": {"b": 3, "c": 4}, "z": {"a": 0, "b": 2, "c": 4}}),
        ),
        ("--- a\n...\n", json!("a")),
        ("\u{feff}a: 1", json!({"a": 1})),
    ] {
        if text.starts_with("&k") {
            let error = yaml::parse(text, &limits()).expect_err(text);
            assert_eq!(error, "line 2: the key `a` is in this map already; remove one");
            continue;
        }
        assert_eq!(yaml(text), expected, "{text}");
    }
}

#[test]
fn yaml_mistake_is_named_with_its_line() {
    for (text, expected) in [
        ("a: 1\nb: [1\n", "line "),
        ("a: 1\na: 2", "line 2: the key `a` is in this map already; remove one"),
        ("a: *no", "line 1: "),
        ("a:\n  &a [1, *a]", "line 2: the alias stands inside of the value"),
        ("a: 1\n---\nb: 2", "line 2: a second document begins here"),
        ("- 1\n- !ruby/object:X {}", "line 2: unknown tag !ruby/object:X; leave it out"),
        ("!!python/name:os.system x", "line 1: unknown tag !!python/name:os.system"),
        ("!!int x", "line 1: `x` is no !!int"),
        ("{[1]: 2}", "line 1: a key must be a string"),
        ("<<: 1", "line 1: `<<` needs the alias of a map"),
        ("0xFFFFFFFFFFFFFFFFFF", "line 1: 0xFFFFFFFFFFFFFFFFFF has more than 63 bits"),
    ] {
        let error = yaml::parse(text, &limits()).map(|value| to_json(&value)).expect_err(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn limits_hold_while_a_text_is_read() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(5000), close.repeat(5000));
    let laughs = (0..20).fold("a0: &a0 [x, x]\n".to_owned(), |text, n| {
        format!("{text}a{}: &a{} [*a{n}, *a{n}]\n", n + 1, n + 1)
    });
    let many = |of: fn(usize) -> String| (0..101).map(of).collect::<Vec<_>>().concat();
    let anchored = many(|n| format!("&a{n} ["));
    let elements = "more than 100 elements of arrays, the limit type.NAME.limits.array_len_max";
    for (format, text, expected) in [
        ("yaml", format!("[{}]", "1,".repeat(101)), elements),
        ("yaml", laughs, elements),
        ("yaml", format!("{anchored}1{}", "]".repeat(101)), elements),
        ("json", format!("[1{}]", ",1".repeat(100)), elements),
        ("toml", format!("a = [1{}]", ",1".repeat(100)), elements),
        ("json", format!("[[{}1]]", "[1],".repeat(60)), elements),
        ("yaml", many(|n| format!("k{n}: 1\n")), "type.NAME.limits.map_len_max"),
        ("toml", many(|n| format!("k{n}= 1\n")), "type.NAME.limits.map_len_max"),
        ("yaml", format!("a: &a {}\nb: *a", "x".repeat(6000)), "limits.string_size_max"),
        ("json", format!("[\"{0}\",\"{0}\"]", "x".repeat(6000)), "limits.string_size_max"),
        ("yaml", deep("[", "]"), "line 1: recursion limit exceeded"),
        ("yaml", deep("- ", ""), elements),
        ("yaml", deep("{a: ", "}"), "line 1: "),
        ("json", deep("[", "]"), "recursion limit exceeded at line 1 column 128"),
        ("toml", format!("a = {}", deep("[", "]")), "line 1: cannot recurse further"),
        ("toml", format!("{}a = 1", "a.".repeat(200_000)), "line 1: "),
        ("toml", format!("[{}a]", "a.".repeat(200_000)), "line 1: "),
    ] {
        let limits = limits();
        let read = || match format {
            "yaml" => yaml::parse(&text, &limits),
            "json" => json::parse(&text, &limits),
            _ => toml_text::parse(&text, &limits).map(Into::into),
        };
        let error = read().map(|value| value.type_name()).expect_err(&text[..20]);
        assert!(error.contains(expected), "{format} {}: {error}", &text[..20]);
    }
}

/// `PyYAML` reads YAML 1.1, so the texts avoid what it reads otherwise.
#[test]
#[expect(clippy::disallowed_methods, reason = "the other parser is a program")]
fn yaml_is_read_as_python_reads_it() {
    let texts = [
        "a: 1\nb: [x, 1.5, null, true]\nc:\n  - d: e\n    f: 'g ''h'''\n  - \"i\\tj\\u00e4\"\n",
        "base: &b\n  x: 1\n  y: [1, 2]\none:\n  <<: *b\n  x: 2\ntwo: *b\n",
        "text: |\n  a\n   b\n\n  c\nfold: >\n  a\n  b\n\n  c\nkeep: |+\n  a\n\nend: |-\n  z\n",
        "# comment\nkey with spaces: value # more\n'quoted': \"x: y\"\nempty:\nlist: []\nmap: {}\n",
        "- [a, [b, {c: d}]]\n- {x: {y: z}}\n-\n  - deep\n",
        "url: http://example.org:80/a#b\ntime: '12:30'\ndash: a - b\nhash: a#b\nq: a ? b\n",
        "multi\n line\n  plain",
        "? a\n: b\n? c\n",
    ];
    let program = "import json, sys, yaml\n\
                   print(json.dumps([yaml.safe_load(t) for t in json.load(sys.stdin)]))";
    let is_there = Command::new("python3").args(["-c", "import yaml"]).output();
    if !needs("python3-yaml", || is_there.is_ok_and(|output| output.status.success())) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("texts");
    std::fs::write(&file, json!(texts).to_string()).expect("written");
    let input = std::fs::File::open(&file).expect("opened");
    let output = Command::new("python3").args(["-c", program]).stdin(input).output();
    let output = output.expect("python3").stdout;
    let expected: Vec<Value> = serde_json::from_slice(&output).expect("JSON");
    for (text, expected) in texts.into_iter().zip(expected) {
        assert_eq!(yaml(text), expected, "{text}");
    }
}
