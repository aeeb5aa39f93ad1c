//! The order of values: each becomes a text that sorts by its bytes as the value does. The order is
//! null, false, true, numbers by size, texts, and everything else.

use serde_json::Value;

use crate::proto::selector::Relation;

/// The maximum number of bytes of a term in an index; longer texts with the same start are told apart by the
/// object.
const INDEXED_BYTES_MAX: usize = 256;

/// The least bytes of a cut term, as it is cut between two characters.
const CERTAIN_BYTES: usize = INDEXED_BYTES_MAX - 3;

const NOTHING: char = '0';
const TRUTH: char = '1';
const NUMBER: char = '2';
const TEXT: char = '3';
const OTHER: char = '4';
/// The end of a term in an entry of an index. No term has it inside.
const END: u8 = 0;
/// Sorts after the end of a term, and before any continuation of a longer one.
const AFTER_END: u8 = 1;

/// A value as a sortable text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(String);

impl Term {
    pub fn of(value: &Value) -> Self {
        Self(match value {
            Value::Null => NOTHING.to_string(),
            Value::Bool(truth) => format!("{TRUTH}{}", u8::from(*truth)),
            Value::Number(number) => {
                let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
                match whole {
                    Some(whole) => number_term(whole_as_float(whole), whole),
                    None => number_term(number.as_f64().unwrap_or_default(), 0),
                }
            }
            Value::String(text) => format!("{TEXT}{}", escaped(text)),
            Value::Array(_) | Value::Object(_) => OTHER.to_string(),
        })
    }

    pub fn indexed(&self) -> &str {
        &self.0[..self.0.floor_char_boundary(INDEXED_BYTES_MAX)]
    }

    fn point(&self) -> Vec<u8> {
        ended(&self.0, END)
    }
}

/// Returns the entry of an index for an object: the indexed part of its term, and its id.
pub fn entry(indexed: &str, id: &str) -> Vec<u8> {
    let mut entry = ended(indexed, END);
    entry.extend_from_slice(id.as_bytes());
    entry
}

pub fn id_of(entry: &[u8]) -> &[u8] {
    let end = entry.iter().rposition(|byte| *byte == END).map_or(0, |place| place + 1);
    &entry[end..]
}

/// Returns the stretch of an index of words that has a word, or the words that begin with it.
pub fn word_range(word: &str, is_prefix: bool) -> (Vec<u8>, Vec<u8>) {
    let word = Value::String(word.to_owned());
    let text = word.as_str().unwrap_or_default();
    let interval =
        if is_prefix { Interval::prefix(text) } else { Interval::of(Relation::Equal, &word) };
    interval.in_index()
}

/// An interval of the order of values, with its low end and without its high end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    low: Vec<u8>,
    high: Vec<u8>,
}

impl Interval {
    pub fn all() -> Self {
        Self { low: Vec::new(), high: vec![0xff] }
    }

    /// The values in this relation to a value; a number is compared only with numbers, a text with
    /// texts.
    pub(super) fn of(relation: Relation, value: &Value) -> Self {
        let term = Term::of(value).0;
        let kind = term.as_bytes()[0];
        let all = Self { low: vec![kind], high: vec![kind + 1] };
        all.part(relation, ended(&term, END), ended(&term, AFTER_END))
    }

    pub(super) fn prefix(text: &str) -> Self {
        let low = format!("{TEXT}{}", escaped(text)).into_bytes();
        Self { high: [low.as_slice(), &[0xff]].concat(), low }
    }

    /// The ids in this relation to an id; their index has them as they are.
    pub(super) fn of_ids(relation: Relation, id: &str) -> Self {
        Self::all().part(relation, id.into(), ended(id, END))
    }

    /// The part of it in this relation to a value, which begins at `at` and ends before `after`.
    fn part(self, relation: Relation, at: Vec<u8>, after: Vec<u8>) -> Self {
        let (low, high) = match relation {
            Relation::Equal => (at, after),
            Relation::Less => (self.low, at),
            Relation::LessOrEqual => (self.low, after),
            Relation::Greater => (after, self.high),
            Relation::GreaterOrEqual => (at, self.high),
        };
        Self { low, high }
    }

    pub(super) fn prefix_of_ids(text: &str) -> Self {
        Self { low: text.into(), high: [text.as_bytes(), &[0xff]].concat() }
    }

    /// The intervals before and after it.
    pub(super) fn others(&self) -> [Self; 2] {
        let all = Self::all();
        [
            Self { low: all.low, high: self.low.clone() },
            Self { low: self.high.clone(), high: all.high },
        ]
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            low: self.low.clone().max(other.low.clone()),
            high: self.high.clone().min(other.high.clone()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    /// Returns whether it has a single value that shares no entry of an index with another value.
    pub fn is_one(&self) -> bool {
        certain(&self.low).is_none()
            && matches!((self.low.split_last(), self.high.split_last()),
            (Some((&END, low)), Some((&AFTER_END, high))) if low == high)
    }

    pub fn has(&self, term: &Term) -> bool {
        self.low <= term.point() && term.point() < self.high
    }

    pub fn has_id(&self, id: &str) -> bool {
        self.low.as_slice() <= id.as_bytes() && id.as_bytes() < self.high.as_slice()
    }

    /// Returns its range in an index: its first entry, and the first one after it. The range may
    /// have entries of longer texts that only start like one of its own.
    pub fn in_index(&self) -> (Vec<u8>, Vec<u8>) {
        let low = certain(&self.low).unwrap_or(&self.low).to_vec();
        let high = match certain(&self.high) {
            // After every entry with this start.
            Some(start) => [start, &[0xff]].concat(),
            None => self.high.clone(),
        };
        (low, high)
    }
}

/// Returns the part of an interval's end that every entry has.
fn certain(bound: &[u8]) -> Option<&[u8]> {
    (bound.len() > CERTAIN_BYTES).then(|| &bound[..CERTAIN_BYTES])
}

fn ended(text: &str, end: u8) -> Vec<u8> {
    [text.as_bytes(), &[end]].concat()
}

/// Escapes the two lowest characters as two, in the same order, so that the end of a term sorts
/// before any character.
fn escaped(text: &str) -> String {
    if !text.contains(['\u{0}', '\u{1}']) {
        return text.to_owned();
    }
    text.replace('\u{1}', "\u{1}\u{2}").replace('\u{0}', "\u{1}\u{1}")
}

#[expect(clippy::cast_precision_loss, reason = "the difference keeps the lost digits")]
fn whole_as_float(whole: i128) -> f64 {
    whole as f64
}

/// Returns the float's bits in sortable form, and for a whole number its difference to that float:
/// above 2^53 not every whole number is a float.
fn number_term(float: f64, whole: i128) -> String {
    let float = if float == 0.0 { 0.0 } else { float };
    let bits = float.to_bits();
    let sorting = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    #[expect(clippy::cast_possible_truncation, reason = "it comes from a number of 64 bits")]
    let apart = if whole == 0 { 0 } else { whole - float as i128 };
    format!("{NUMBER}{sorting:016x}{:04x}", apart + 0x8000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-5i64..5).prop_map(Value::from),
            ((1i64 << 53) - 3..(1i64 << 53) + 3).prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |f| f.is_finite()).prop_map(Value::from),
            (-5i32..5).prop_map(|n| Value::from(f64::from(n) / 2.0)),
        ]
    }

    /// Compares whole numbers exactly, and floats by value.
    fn compared(a: &Value, b: &Value) -> std::cmp::Ordering {
        let whole = |v: &Value| v.as_i64().map(i128::from).or(v.as_u64().map(i128::from));
        if let (Some(a), Some(b)) = (whole(a), whole(b)) {
            return a.cmp(&b);
        }
        let float = |v: &Value| v.as_f64().expect("a number");
        float(a).partial_cmp(&float(b)).expect("no NaN")
    }

    proptest! {
        #[test]
        fn numbers_sort_as_numbers(a in number(), b in number()) {
            let by_term = Term::of(&a).cmp(&Term::of(&b));
            let by_value = compared(&a, &b);
            // Above 2^53 a float equals several whole numbers, which their terms tell apart.
            prop_assert!(by_term == by_value || by_value.is_eq() && a.is_f64() != b.is_f64(), "{a} {b}");
        }

        #[test]
        fn texts_sort_by_their_bytes(a in "[\u{0}-\u{3}aé]{0,6}", b in "[\u{0}-\u{3}aé]{0,6}") {
            let term = |text: &str| Term::of(&json!(text)).point();
            prop_assert_eq!(term(&a).cmp(&term(&b)), a.cmp(&b));
        }

        #[test]
        fn an_interval_has_the_values_of_its_relation(
            a in "[\u{0}-\u{3}aé]{0,5}", b in "[\u{0}-\u{3}aé]{0,5}"
        ) {
            let has = |relation| Interval::of(relation, &json!(b)).has(&Term::of(&json!(a)));
            prop_assert_eq!(has(Relation::Equal), a == b);
            prop_assert_eq!(has(Relation::Less), a < b);
            prop_assert_eq!(has(Relation::LessOrEqual), a <= b);
            prop_assert_eq!(has(Relation::Greater), a > b);
            prop_assert_eq!(has(Relation::GreaterOrEqual), a >= b);
            let prefix = Interval::prefix(&b).has(&Term::of(&json!(a)));
            prop_assert_eq!(prefix, a.starts_with(b.as_str()));
            let id = |relation| Interval::of_ids(relation, &b).has_id(&a);
            if !a.contains(['\u{0}', '\u{1}']) && !b.contains(['\u{0}', '\u{1}']) {
                prop_assert_eq!(id(Relation::Equal), a == b);
                prop_assert_eq!(id(Relation::Less), a < b);
                prop_assert_eq!(id(Relation::Greater), a > b);
                prop_assert_eq!(Interval::prefix_of_ids(&b).has_id(&a), a.starts_with(b.as_str()));
            }
        }

        /// The range of an interval has all of its values, and entries sort as their values.
        #[test]
        fn the_range_of_an_interval_has_all_of_its_values(
            start in "[aé]{0,4}", fill in 240usize..262, a in "[aé]{0,3}", b in "[aé]{0,3}"
        ) {
            let long = |end: &str| json!(format!("{start}{}{end}", "x".repeat(fill)));
            let (a, b) = (long(&a), long(&b));
            let term = Term::of(&a);
            let entry = entry(term.indexed(), "id");
            prop_assert_eq!(id_of(&entry), b"id");
            let mut intervals: Vec<Interval> = [
                Relation::Equal, Relation::Less, Relation::LessOrEqual, Relation::Greater,
                Relation::GreaterOrEqual,
            ].into_iter().map(|relation| Interval::of(relation, &b)).collect();
            intervals.push(Interval::prefix(b.as_str().expect("a text")));
            intervals.extend(Interval::of(Relation::Equal, &b).others());
            for interval in intervals {
                let (low, high) = interval.in_index();
                let in_index = low <= entry && entry < high;
                prop_assert!(in_index || !interval.has(&term), "{a} {interval:?}");
            }
        }
    }

    #[test]
    fn values_of_different_kinds_do_not_mix() {
        let values = [json!(null), json!(false), json!(true), json!(1e300), json!(""), json!([])];
        assert!(values.windows(2).all(|pair| Term::of(&pair[0]) < Term::of(&pair[1])));
        assert!(!Interval::of(Relation::Greater, &json!(1)).has(&Term::of(&json!("x"))));
        assert!(!Interval::of(Relation::Less, &json!("x")).has(&Term::of(&json!(1))));
        assert_eq!(Term::of(&json!(1)), Term::of(&json!(1.0)));
        assert_eq!(Term::of(&json!(0.0)), Term::of(&json!(-0.0)));
    }

    #[test]
    fn an_interval_of_one_value_is_recognized() {
        assert!(Interval::of(Relation::Equal, &json!(7)).is_one());
        assert!(!Interval::of(Relation::Greater, &json!(7)).is_one());
        assert!(!Interval::all().is_one());
        let none = Interval::of(Relation::Less, &json!(1))
            .and(&Interval::of(Relation::Greater, &json!(2)));
        assert!(none.is_empty());
    }
}
