//! The grammar, the canonical text and the matches of expressions.

use proptest::prelude::*;

use super::*;

fn selector(text: &str) -> Selector {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn labels(text: &str) -> Labels {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("a pair");
        (name.parse().expect("legal"), value.parse().expect("legal"))
    };
    text.split_whitespace().map(pair).collect()
}

#[test]
fn expression_matches_by_comparison_lists_and_logic() {
    let web = labels("role=web release=12 arch=amd64 kernel=6.1.0-18-amd64 memory=17179869184");
    for text in [
        "role = \"web\" and release >= 12 and not arch = \"arm64\"",
        "role = 'web'",
        "role=web",
        "release = \"12\"",
        "release > 9",
        "role in (db, web)",
        "role not in ('db')",
        "gpu != yes",
        "not gpu = yes",
        "gpu = yes or (role = web and release < 13)",
        "kernel >= 6.1 and kernel < 6.2",
        "memory >= 16GiB",
        "NOT (role = db OR role = mail)",
    ] {
        assert!(selector(text).matches(&web), "{text}");
    }
    for text in [
        "role = db",
        "gpu = yes",
        "gpu < 3",
        "gpu >= 3",
        "gpu in (yes, no)",
        "release >= 12.1",
        "role = web and not role = web",
    ] {
        assert!(!selector(text).matches(&web), "{text}");
    }
}

#[test]
fn equal_expressions_have_one_text_and_digest() {
    for (text, canonical) in [
        ("role=web", "role = \"web\""),
        ("role == 'web'", "role = \"web\""),
        ("release=\"12\"", "release = 12"),
        ("release >= 12.0", "release >= 12"),
        ("b = 1 and a = 2 and b = 1", "a = 2 and b = 1"),
        ("(a = 1 and b = 2) and c = 3", "a = 1 and b = 2 and c = 3"),
        ("a = 1 and (b = 2 or c = 3)", "a = 1 and (b = 2 or c = 3)"),
        ("a = 1 or b = 2 and c = 3", "a = 1 or (b = 2 and c = 3)"),
        ("not not a = 1", "a = 1"),
        ("not a = 1", "a != 1"),
        ("not a != 1", "a = 1"),
        ("not (a in (2, 1, 2))", "a not in (1, 2)"),
        ("a in (x)", "a = \"x\""),
        ("not a < 1", "not a < 1"),
        ("not (a = 1 or b = 1)", "not (a = 1 or b = 1)"),
        ("memory >= 16GiB", "memory >= 17179869184"),
    ] {
        let read = selector(text);
        assert_eq!(read.to_string(), canonical, "{text}");
        assert_eq!(read, selector(canonical));
    }
    // As `printf %s 'role = "web"' | sha1sum` has it.
    let digest = selector("role=web").digest();
    assert_eq!(digest.as_str(), "c16a1f7e38eb38d87daf6db28d26c1a0fa66a3b0");
}

#[test]
fn mistakes_name_their_place_and_what_was_expected() {
    for (text, said) in [
        ("", "at character 1: expected a label, `not` or `(`, not the end"),
        ("role", "at character 5: expected =, !=, <, <=, >, >= or `in`, not the end"),
        ("role = ", "at character 8: expected a value, such as \"web\" or 12, not the end"),
        (
            "role = web release = 12",
            "at character 12: expected `and`, `or` or the end, not `release`",
        ),
        ("role = \"web", "at character 8: the text has no closing \""),
        ("(role = web", "at character 12: expected `and`, `or` or `)`, not the end"),
        (
            "role in web",
            "at character 9: expected `(` and values, such as (\"a\", \"b\"), not `web`",
        ),
        ("role in (web db)", "at character 14: expected `,` or `)`, not `db`"),
        ("role = and", "at character 8: expected a value, such as \"web\" or 12, not `and`"),
        (
            "memory >= 16XiB",
            "at character 11: expected a size in B, KB, MB, GB, KiB, MiB or GiB, such as \"1MiB\"; a text stands in quotation marks",
        ),
        ("röle = web", "at character 2: `ö` has no meaning here"),
        ("a = 1 && b = 2", "at character 7: `&` has no meaning here"),
        ("a = \"é\" und b = 2", "at character 9: expected `and`, `or` or the end, not `und`"),
    ] {
        let error = text.parse::<Selector>().expect_err(text).to_string();
        assert_eq!(error, said, "{text}");
    }
    let upper = "Role = web".parse::<Selector>().expect_err("capital").to_string();
    assert!(upper.starts_with("at character 1: label `Role` is not legal: "), "{upper}");
    let deep = format!("{}a = 1", "not ".repeat(200)).parse::<Selector>();
    assert!(deep.expect_err("deep").to_string().contains("more than 32 parentheses"));
    let long = vec!["a = b"; 300].join(" and ").parse::<Selector>();
    assert_eq!(long.expect_err("long"), SelectorError::TooLong);
    let grows =
        format!("a in ({})", (100..300).map(|n| format!("x{n}")).collect::<Vec<_>>().join(","));
    assert!(
        grows.len() < 1100 && grows.parse::<Selector>().is_err(),
        "its canonical text is longer"
    );
}

#[test]
fn mismatch_counts_the_actors_that_fail_each_part_and_names_the_nearest_label() {
    let actors = [labels("role=web release=11"), labels("role=db release=12")];
    let actors: Vec<&Labels> = actors.iter().collect();
    assert_eq!(
        selector("role = web and release >= 12 and relase < 3").mismatch(&actors),
        "of 2 live actors, 2 fail relase < 3, 1 fails release >= 12, 1 fails role = \"web\"; none has the \
         label `relase`, did you mean `release`?"
    );
    assert_eq!(
        selector("a = 1 or b = 1").mismatch(&[]),
        "of 0 live actors, 0 fail a = 1 or b = 1; none has the label `a`; none has the label `b`"
    );
}

/// An expression as a person may write it, with its meaning.
#[derive(Debug, Clone)]
enum WrittenExpression {
    Compare(String, &'static str, String),
    In(String, Vec<String>, bool),
    Not(Box<WrittenExpression>),
    And(Vec<WrittenExpression>),
    Or(Vec<WrittenExpression>),
}

impl WrittenExpression {
    fn text(&self) -> String {
        let joined = |parts: &[Self], word: &str| {
            let parts: Vec<String> =
                parts.iter().map(|part| format!("({})", part.text())).collect();
            parts.join(&format!("  {word} "))
        };
        match self {
            Self::Compare(label, sign, value) => format!("{label}{sign}'{value}'"),
            Self::In(label, values, not) => {
                let not = if *not { "not " } else { "" };
                format!("{label} {not}in ({})", values.join(" , "))
            }
            Self::Not(part) => format!("not ({})", part.text()),
            Self::And(parts) => joined(parts, "and"),
            Self::Or(parts) => joined(parts, "OR"),
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        let own = |label: &str| labels.get(&label.parse::<LabelName>().expect("legal"));
        let given = |text: &str| text.parse::<LabelValue>().expect("legal");
        match self {
            Self::Compare(label, sign, value) => {
                let order =
                    own(label).map(|own| (own.order(&given(value)), own.equals(&given(value))));
                match *sign {
                    "=" => order.is_some_and(|(_, equals)| equals),
                    "!=" => !order.is_some_and(|(_, equals)| equals),
                    "<" => order.is_some_and(|(order, _)| order.is_lt()),
                    _ => order.is_some_and(|(order, _)| order.is_ge()),
                }
            }
            Self::In(label, values, not) => {
                let is_one = own(label)
                    .is_some_and(|own| values.iter().any(|value| own.equals(&given(value))));
                is_one != *not
            }
            Self::Not(part) => !part.matches(labels),
            Self::And(parts) => parts.iter().all(|part| part.matches(labels)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(labels)),
        }
    }
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9]{1,3}", "-?[0-9]{1,2}\\.[0-9]{1,2}", "[a-z]{1,3}", "[0-9]GiB"]
}

fn written() -> impl Strategy<Value = WrittenExpression> {
    let sign = prop_oneof![Just("="), Just("!="), Just("<"), Just(">=")];
    let leaf = prop_oneof![
        ("[abc]", sign, value())
            .prop_map(|(label, sign, value)| WrittenExpression::Compare(label, sign, value)),
        ("[abc]", proptest::collection::vec(value(), 1..4), proptest::bool::ANY)
            .prop_map(|(label, values, not)| WrittenExpression::In(label, values, not)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let some = || proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            inner.clone().prop_map(|part| WrittenExpression::Not(Box::new(part))),
            some().prop_map(WrittenExpression::And),
            some().prop_map(WrittenExpression::Or),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_text_reads_back_and_means_what_was_written(
        written in written(),
        own in proptest::collection::btree_map("[abc]", value(), 0..4),
    ) {
        let text = written.text();
        prop_assume!(text.len() < 900);
        let Ok(read) = text.parse::<Selector>() else { return Ok(()) };
        let canonical = read.to_string();
        prop_assert_eq!(&selector(&canonical), &read);
        prop_assert_eq!(selector(&canonical).to_string(), canonical);
        let labels: Labels = own
            .into_iter()
            .map(|(name, value)| (name.parse().expect("legal"), value.parse().expect("legal")))
            .collect();
        prop_assert_eq!(read.matches(&labels), written.matches(&labels));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,80}", more in "[abc=<>!'\"() ,inotrd12]{0,60}") {
        let _ = text.parse::<Selector>();
        let _ = more.parse::<Selector>();
    }
}
