//! Targets of jobs and identities of actors: script types, groups, instances, priorities.
//!
//! Every name is checked once, where it enters, and has its own type from there on. A name has no
//! colon, so a name chosen by a user cannot reach a key of another.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::{Deserialize, Serialize};

use super::text::{hexadecimal, shown};
use crate::proto::word_table::words;

/// A name that is not legal. The message has its kind, its value and the legal form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{}` is not legal: {form}", shown(.value))]
pub struct IllegalName {
    /// The kind of name: `script type`, `group`, `instance`, …
    pub what: &'static str,
    pub value: String,
    /// The legal form, in words.
    pub form: &'static str,
}

impl IllegalName {
    pub fn new(what: &'static str, value: &str, form: &'static str) -> Self {
        Self { what, value: value.to_owned(), form }
    }
}

/// Returns whether a name has 1 to `most` letters, digits and these signs.
pub fn is_word(name: &[u8], most: usize, signs: &[u8]) -> bool {
    (1..=most).contains(&name.len())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || signs.contains(byte))
}

/// Returns whether it has these, and no capital letter.
pub fn is_small_word(name: &[u8], most: usize, signs: &[u8]) -> bool {
    is_word(name, most, signs) && !name.iter().any(u8::is_ascii_uppercase)
}

/// Returns whether it has 1 to `most` letters, digits and `_`, the first no digit.
pub fn is_identifier(name: &[u8], most: usize) -> bool {
    is_word(name, most, b"_") && !name[0].is_ascii_digit()
}

/// Returns whether it has so many hexadecimal digits, in small letters.
pub fn is_hexadecimal(name: &[u8], length: usize) -> bool {
    name.len() == length && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Declares a string newtype with one check; a value of the type is always legal.
#[doc(hidden)]
#[macro_export]
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $form:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The legal form, for messages and help.
            pub const FORM: &'static str = $form;

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IllegalName;

            fn from_str(value: &str) -> Result<Self, IllegalName> {
                let check: fn(&[u8]) -> bool = $check;
                if check(value.as_bytes()) {
                    Ok(Self(value.to_owned()))
                } else {
                    Err(IllegalName::new($what, value, $form))
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        $crate::as_text!($name);
        $crate::inline_schema!($name);
    };
}
pub use crate::name;

name!(
    /// The type of a job's script, which decides its engine: `osis`, `sal`, `python`, …
    ScriptType,
    "script type",
    "a lower-case letter, then at most 31 of a-z, 0-9 and _",
    |name| is_small_word(name, 32, b"_") && name[0].is_ascii_lowercase()
);

name!(Group, "group", "a letter a-z or digit, then at most 63 of a-z, 0-9, _, . and -", |name| {
    is_small_word(name, 64, b"_.-") && name[0].is_ascii_alphanumeric()
});

impl Default for Group {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

name!(
    /// The digest of the text of `where`, in the name of its queue: SHA-1 in lower-case hexadecimal digits, as Lua in
    /// Redis has no other.
    SelectorDigest,
    "digest of `where`",
    "40 of 0-9 and a-f",
    |name| is_hexadecimal(name, 40)
);

impl SelectorDigest {
    /// Returns the digest of the text that the field `where` of a job has.
    pub fn of_text(text: &str) -> Self {
        Self(hexadecimal(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref()))
    }
}

/// The number of one actor, unique within its script type and group: 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64")]
pub struct Instance(u16);

impl Instance {
    pub const FORM: &'static str = "a whole number from 1 to 65535";

    pub fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for Instance {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let number = canonical_number::<u16>(value).filter(|number| *number > 0);
        number.map(Self).ok_or_else(|| IllegalName::new("instance", value, Self::FORM))
    }
}

impl TryFrom<i64> for Instance {
    type Error = IllegalName;

    fn try_from(number: i64) -> Result<Self, IllegalName> {
        number.to_string().parse()
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parses a number without sign, leading zero or space: two spellings of one instance would be two
/// queues.
fn canonical_number<N: FromStr + ToString>(value: &str) -> Option<N> {
    let number: N = value.parse().ok()?;
    (number.to_string() == value).then_some(number)
}

words! {
    /// The order of a job among others for the same actors.
    #[derive(PartialOrd, Ord, Hash, Default)]
    Priority, "priority", "0 (urgent), 1 (normal) or 2 (background)";
    /// 0: before all others.
    Urgent = "0",
    /// 1: the default; its queues carry no suffix.
    #[default]
    Normal = "1",
    /// 2: after all others.
    Background = "2",
}

impl Priority {
    /// Returns the digit of a word for a priority; any other text as it is.
    pub fn of_word(text: &str) -> &str {
        let levels = [["urgent", "high"], ["normal", "1"], ["background", "low"]];
        let level = levels.iter().zip(Self::ALL).find(|(words, _)| words.contains(&text));
        level.map_or(text, |(_, level)| level.as_str())
    }
}

words! {
    /// The farthest queue that a job may go to from a group or instance without live actors.
    #[derive(Default, Deserialize)]
    Fallback;
    /// It waits where it is.
    #[default]
    None = "none",
    /// From an instance to its group.
    Group = "group",
    /// To any actor of its type.
    Type = "type",
}

impl FromStr for Fallback {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        match text.to_ascii_lowercase().as_str() {
            "none" | "0" | "false" | "no" => Ok(Self::None),
            "group" => Ok(Self::Group),
            "type" | "1" | "true" | "yes" => Ok(Self::Type),
            _ => Err(IllegalName::new("fallback", text, "none, group or type")),
        }
    }
}

/// One actor: its script type, group and instance. Written `TYPE:GROUP:INSTANCE` in Redis and
/// `TYPE-GROUP-INSTANCE` as the name of its unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    pub script_type: ScriptType,
    pub group: Group,
    pub instance: Instance,
}

impl ActorId {
    const FORM: &'static str = "TYPE:GROUP:INSTANCE, such as osis:default:1";
    const UNIT_FORM: &'static str = "TYPE-GROUP-INSTANCE, such as osis-default-1";

    /// Parses the name of a unit: the type ends at the first `-`, the instance starts after the
    /// last, and the group is between them.
    pub fn from_unit(unit: &str) -> Result<Self, IllegalName> {
        let illegal = || IllegalName::new("actor", unit, Self::UNIT_FORM);
        let (script_type, rest) = unit.split_once('-').ok_or_else(illegal)?;
        let (group, instance) = rest.rsplit_once('-').ok_or_else(illegal)?;
        Self::of_parts(script_type, group, instance)
    }

    /// Parses either spelling of an actor's name: TYPE:GROUP:INSTANCE, or the name of its unit.
    pub fn of_name(name: &str) -> Result<Self, IllegalName> {
        if name.contains(':') { name.parse() } else { Self::from_unit(name) }
    }

    pub fn unit(&self) -> String {
        format!("{}-{}-{}", self.script_type, self.group, self.instance)
    }

    fn of_parts(script_type: &str, group: &str, instance: &str) -> Result<Self, IllegalName> {
        let (script_type, group) = (script_type.parse()?, group.parse()?);
        Ok(Self { script_type, group, instance: instance.parse()? })
    }
}

impl FromStr for ActorId {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        match value.split(':').collect::<Vec<_>>().as_slice() {
            [script_type, group, instance] => Self::of_parts(script_type, group, instance),
            _ => Err(IllegalName::new("actor", value, Self::FORM)),
        }
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.script_type, self.group, self.instance)
    }
}

/// The target of a job: any actor of its type, the actors of one group, one instance, or those whose labels match.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    script_type: ScriptType,
    narrowed: Narrowed,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Narrowed {
    No,
    Group(Group, Option<Instance>),
    Where(SelectorDigest),
}

impl Target {
    pub fn any(script_type: ScriptType) -> Self {
        Self { script_type, narrowed: Narrowed::No }
    }

    pub fn group(script_type: ScriptType, group: Group) -> Self {
        Self { script_type, narrowed: Narrowed::Group(group, None) }
    }

    pub fn instance(script_type: ScriptType, group: Group, instance: Instance) -> Self {
        Self { script_type, narrowed: Narrowed::Group(group, Some(instance)) }
    }

    /// Any actor whose labels match the expression with this digest.
    pub fn matching(script_type: ScriptType, digest: SelectorDigest) -> Self {
        Self { script_type, narrowed: Narrowed::Where(digest) }
    }

    /// Returns the target of a job's fields: the most specific wins, and an instance without a
    /// group is in the group `default`. No legal job has `where` beside these.
    pub fn of(
        script_type: ScriptType,
        group: Option<Group>,
        instance: Option<Instance>,
        selector: Option<SelectorDigest>,
    ) -> Self {
        match (group, instance, selector) {
            (None, None, None) => Self::any(script_type),
            (None, None, Some(digest)) => Self::matching(script_type, digest),
            (Some(group), None, _) => Self::group(script_type, group),
            (group, Some(instance), _) => {
                Self::instance(script_type, group.unwrap_or_default(), instance)
            }
        }
    }

    pub fn script_type(&self) -> &ScriptType {
        &self.script_type
    }

    pub fn group_name(&self) -> Option<&Group> {
        match &self.narrowed {
            Narrowed::Group(group, _) => Some(group),
            Narrowed::No | Narrowed::Where(_) => None,
        }
    }

    pub fn selector(&self) -> Option<&SelectorDigest> {
        match &self.narrowed {
            Narrowed::Where(digest) => Some(digest),
            Narrowed::No | Narrowed::Group(..) => None,
        }
    }

    /// The first unit, by name, whose actor runs the target's jobs.
    pub fn first_unit(&self) -> String {
        let (group, instance) = match self.narrowed.clone() {
            Narrowed::Group(group, instance) => (group, instance),
            Narrowed::No | Narrowed::Where(_) => (Group::default(), None),
        };
        let instance = instance.map_or_else(|| "1".to_owned(), |instance| instance.to_string());
        format!("{}-{group}-{instance}", self.script_type)
    }
}

/// Written as in the keys of the queues: `type:T`, then `:group:G`, then `:inst:I`; or then `:where:DIGEST`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type:{}", self.script_type)?;
        match &self.narrowed {
            Narrowed::No => Ok(()),
            Narrowed::Group(group, None) => write!(f, ":group:{group}"),
            Narrowed::Group(group, Some(instance)) => write!(f, ":group:{group}:inst:{instance}"),
            Narrowed::Where(digest) => write!(f, ":where:{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::queue::Queue;
    use proptest::prelude::*;

    fn actor(unit: &str) -> ActorId {
        ActorId::from_unit(unit).expect("a legal unit name")
    }

    #[test]
    fn unit_names_split_at_the_first_and_the_last_dash() {
        let id = actor("osis-gpu-large-12");
        assert_eq!(id.to_string(), "osis:gpu-large:12");
        assert_eq!(id.unit(), "osis-gpu-large-12");
        assert_eq!("osis:gpu-large:12".parse(), Ok(id));
    }

    #[test]
    fn illegal_names_are_rejected_with_their_form() {
        for unit in [
            "",
            "osis",
            "osis-1",
            "Osis-default-1",
            "osis-default-0",
            "osis-default-65536",
            "osis-default-01",
            "osis--1",
            "osis-a:b-1",
            "9x-default-1",
        ] {
            assert!(ActorId::from_unit(unit).is_err(), "{unit} was accepted");
        }
        let error = "a:b".parse::<Group>().expect_err("a colon is never legal");
        assert_eq!(error.to_string(), format!("group `a:b` is not legal: {}", Group::FORM));
    }

    #[test]
    fn a_hostile_value_is_shortened_and_escaped_in_messages() {
        let message = "\u{1b}[2J".repeat(1000).parse::<Group>().expect_err("illegal").to_string();
        assert!(message.len() < 1000 && !message.contains('\u{1b}'), "{message}");
    }

    #[test]
    fn the_most_specific_target_wins_and_an_instance_without_group_is_in_the_default_group() {
        let osis: ScriptType = "osis".parse().expect("legal");
        let one = Instance::try_from(1).expect("legal");
        let of = |group: Option<&str>, instance| {
            let group = group.map(|g| g.parse().expect("legal"));
            Target::of(osis.clone(), group, instance, None).to_string()
        };
        assert_eq!(of(None, None), "type:osis");
        assert_eq!(of(Some("io"), None), "type:osis:group:io");
        assert_eq!(of(Some("io"), Some(one)), "type:osis:group:io:inst:1");
        assert_eq!(of(None, Some(one)), "type:osis:group:default:inst:1");
        assert_eq!(Target::any(osis.clone()).first_unit(), "osis-default-1");
        let io = Target::group(osis, "io".parse().expect("legal"));
        assert_eq!(io.first_unit(), "osis-io-1");
    }

    proptest! {
        #[test]
        fn no_input_makes_a_parser_panic_or_accept_a_colon(text in ".{0,80}") {
            if let Ok(name) = text.parse::<ScriptType>() { prop_assert!(!name.as_str().contains(':')); }
            if let Ok(name) = text.parse::<Group>() { prop_assert!(!name.as_str().contains(':')); }
            let _ = text.parse::<Instance>();
            let _ = text.parse::<ActorId>();
            let _ = ActorId::from_unit(&text);
            let _ = text.parse::<Queue>();
        }
    }
}
