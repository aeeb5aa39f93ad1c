//! Tests of parsing and matching queries.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn means(query: &str, object: &Value) -> bool {
    let query = Query::parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    query.means("p1", object.as_object().expect("a map"))
}

fn refusal(query: &str) -> String {
    Query::parse(query).expect_err(query).to_string()
}

#[test]
fn a_query_matches_the_objects_of_its_conditions() {
    let ann =
        json!({ "name": "Ann", "age": 30, "city": "Gent", "home": { "floor": 2 }, "left": null });
    for (query, expected) in [
        ("", true),
        ("name = \"Ann\"", true),
        ("name == 'Ann'", true),
        ("name = \"ann\"", false),
        ("name != \"Ann\"", false),
        ("name != 'Bob'", true),
        ("age > 29 and age < 31", true),
        ("age > 30", false),
        ("age >= 30.0", true),
        ("age <= 29.9", false),
        ("age > 31 or city = 'Gent'", true),
        ("age > 31 or city = 'Brussel'", false),
        ("(age = 1 OR age = 30) AND (name = 'x' or name starts with 'A')", true),
        ("name starts with 'Ann'", true),
        ("name starts with 'Anna'", false),
        ("age in [1, 30]", true),
        ("city in ['a', 'b']", false),
        ("home.floor = 2", true),
        ("left = null and nobody = () and age != ()", true),
        ("id = 'p1'", true),
        ("id starts with 'p' and id > 'p0' and id < 'p2'", true),
        ("id != 'p1'", false),
        ("age = 'x' or age < 'x'", false),
        ("age > 5 and age < 3", false),
    ] {
        assert_eq!(means(query, &ann), expected, "{query}");
    }
}

#[test]
fn order_and_limit_are_parsed() {
    let query = Query::parse("age > 1 order by home.floor DESC limit 20").expect("legal");
    let floor: Field = "home.floor".parse().expect("legal");
    assert_eq!((query.order, query.limit), (Some((floor, Direction::Descending)), Some(20)));
    let query = Query::parse("order by age").expect("legal");
    let fields: Vec<&str> = query.fields().map(Field::as_str).collect();
    assert_eq!(fields, ["age"]);
    assert_eq!((query.any, query.limit), (vec![Every::default()], None));
}

#[test]
fn a_map_of_values_is_a_query_of_equals() {
    let pair = |name: &str, value: Value| (name.parse::<Field>().expect("legal"), value);
    let query = Query::equal(&[pair("age", json!(3)), pair("name", json!("x"))]).expect("legal");
    assert_eq!(query, Query::parse("name = 'x' and age = 3").expect("legal"));
    assert!(Query::equal(&[pair("age", json!([1]))]).is_err());
    assert!(Query::equal(&[pair("id", json!(1))]).is_err());
}

#[test]
fn a_mistake_is_reported_with_its_column() {
    for (query, expected) in [
        ("age >", "column 6: expected a value"),
        ("age > > 3", "column 7: expected a value"),
        ("age 3", "column 5: expected =, !=, <,"),
        ("= 3", "column 1: expected the name of a field"),
        ("é = 3", "column 1: `é` means nothing here"),
        ("name = 'é' ? 3", "column 12: `?` means nothing here"),
        ("name = 'open", "column 8: this text has no end"),
        ("name = 'a\\x'", "column 10: `\\` stands only before"),
        ("age = 1x", "column 7: not a number"),
        ("age = 1 age", "column 9: expected `and`, `or`, `order by`"),
        ("(age = 1", "column 9: expected `and`, `or` or `)`"),
        ("age in 3", "column 8: expected a list"),
        ("age in [3 4]", "column 11: expected `,` or `]`"),
        ("name starts with 3", "column 18: expected a text in quotes"),
        ("id = 3", "column 6: an id is a text"),
        ("age = 1 limit 0", "column 15: expected a number from 1"),
        ("a..b = 1", "column 1: `a..b` is not a field"),
        ("order by", "column 9: expected the name of a field"),
    ] {
        let message = refusal(query);
        assert!(message.starts_with(&format!("query, {expected}")), "{query}: {message}");
    }
}

#[test]
fn a_query_that_is_too_large_is_rejected() {
    assert!(refusal(&"(".repeat(1000)).contains("parentheses nest too deeply"));
    let many = ["(a = 1 or a = 2)"; 10].join(" and ");
    // The conditions of one field are merged, so this stays small …
    assert!(Query::parse(&many).is_ok());
    // … and these do not.
    let fields: Vec<String> = (0..10).map(|n| format!("(a{n} = 1 or a{n} = 2)")).collect();
    assert!(refusal(&fields.join(" and ")).contains("too many combinations"));
    let long: Vec<String> = (0..100).map(|n| format!("a{n} = 1")).collect();
    assert!(refusal(&long.join(" and ")).contains("too many combinations"));
    assert!(refusal(&format!("a = '{}'", "x".repeat(20_000))).contains("longer than"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
        let _ = Query::parse(&text);
    }

    #[test]
    fn no_mix_of_words_makes_the_parser_panic(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "a", "b.c", "id", "=", "!=", "<", ">=", "(", ")", "[", "]", ",", "and", "or", "in",
            "starts", "with", "order", "by", "desc", "limit", "1", "-2.5", "'x'", "\"é", "null",
            "()", "true", "\\", "'",
        ]), 0..30)
    ) {
        for text in [words.join(" "), words.concat()] {
            match Query::parse(&text) {
                Ok(query) => {
                    let _ = query.means("x", &Map::new());
                }
                Err(error) => prop_assert!(error.column <= text.chars().count() + 1, "{text}: {error}"),
            }
        }
    }

    /// The indexed part of a value never hides a matching object.
    #[test]
    fn a_match_is_never_excluded_by_its_index(value in "[a-cé]{0,3}", fill in 250usize..260, query in "[a-cé]{0,3}") {
        let long = |text: &str| format!("{}{text}", "x".repeat(fill));
        let body = json!({ "f": long(&value) });
        let body = body.as_object().expect("a map");
        for sign in ["=", "!=", "<", ">", "<=", ">=", "starts with"] {
            let query = Query::parse(&format!("f {sign} '{}'", long(&query))).expect("legal");
            let term = "f".parse::<Field>().expect("legal").term(body);
            let may = query.any.iter().any(|every| every.may_be_met("p", |_| Some(term.indexed())));
            prop_assert!(may || !query.means("p", body), "{sign}");
        }
    }
}
