//! The checkpoint: the state that a script saves for the next attempt of its job: a value of JSON of bounded size.

use crate::proto::json_text::compact;

/// The most bytes of a state, as JSON without space between its parts.
pub const STATE_BYTES_MAX: usize = 64 * 1024;

/// A state: JSON in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint(String);

impl Checkpoint {
    /// Takes a value of JSON. `null` keeps nothing.
    pub fn of_json(json: &str) -> Result<Self, String> {
        let json = compact(json).map_err(|error| format!("the state is not JSON: {error}"))?;
        // Programs that read it as a value have such a bound: 128 parts in each other.
        let value = serde_json::from_str::<serde_json::Value>(&json);
        value.map_err(|error| format!("the state cannot be read: {error}"))?;
        if json.len() > STATE_BYTES_MAX {
            return Err(Self::too_large());
        }
        Ok(Self(json))
    }

    pub fn too_large() -> String {
        format!(
            "the state has more than {STATE_BYTES_MAX} bytes of JSON: keep less, such as a number or a key"
        )
    }

    /// Returns the JSON; empty if nothing is to be kept.
    pub fn as_str(&self) -> &str {
        if self.0 == "null" { "" } else { &self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_kept_in_one_line_up_to_its_bound() {
        let of = |json: &str| Checkpoint::of_json(json).map(|state| state.as_str().to_owned());
        assert_eq!(
            of("{ \"row\" : 12345678901234567890 }"),
            Ok("{\"row\":12345678901234567890}".to_owned())
        );
        assert_eq!(of("null"), Ok(String::new()));
        let of_length = |length: usize| of(&format!("\"{}\"", "x".repeat(length - 2)));
        assert_eq!(of_length(STATE_BYTES_MAX).map(|state| state.len()), Ok(STATE_BYTES_MAX));
        assert_eq!(of_length(STATE_BYTES_MAX + 1), Err(Checkpoint::too_large()));
        let deep = of(&format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)));
        assert!(deep.expect_err("too deep").contains("recursion limit"));
    }
}
