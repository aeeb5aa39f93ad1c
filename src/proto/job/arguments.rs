//! Arguments and parameters of a script.

use serde_json::{Map, Value, json};

use super::value::{FieldKind, Give, HashValue, ListItem};
use crate::proto::json_text::refuse_wide_integers;

const ARGS_MAX: usize = 1_000;
/// The maximum number of bytes of all arguments of a job, and of its parameters as JSON. The kernel takes 128 KiB in
/// one argument or variable.
const GIVEN_BYTES_MAX: usize = 64 << 10;

/// The parameters of a job, by name, in the submitter's order.
pub type Params = Map<String, Value>;

impl ListItem for String {
    fn fault(arguments: &[Self]) -> Option<String> {
        if arguments.len() > ARGS_MAX {
            return Some(format!("has more than {ARGS_MAX} arguments"));
        }
        if arguments.iter().any(|text| text.contains('\0')) {
            return Some("has an argument with a NUL byte".to_owned());
        }
        too_large(arguments.iter().map(String::len).sum())
    }
}

impl HashValue for Params {
    const KIND: FieldKind = FieldKind::Object;

    fn read(text: &str) -> Result<Self, String> {
        refuse_wide_integers(text.as_bytes()).map_err(|why| format!("cannot be read: {why}"))?;
        serde_json::from_str(text).map_err(|_| "is not a JSON object".to_owned())
    }

    fn write(&self) -> String {
        json!(self).to_string()
    }

    fn fault(&self) -> Option<String> {
        too_large(if self.is_empty() { 0 } else { self.write().len() })
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.extend(Self::read(text)?);
        self.fault().map_or(Ok(()), Err)
    }
}

impl Give<(&str, Value)> for Params {
    fn give(&mut self, (name, value): (&str, Value)) -> Result<(), String> {
        self.insert(name.to_owned(), value);
        self.fault().map_or(Ok(()), Err)
    }
}

fn too_large(bytes: usize) -> Option<String> {
    let most = GIVEN_BYTES_MAX;
    (bytes > most).then(|| format!("has {bytes} bytes, more than {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::{InvalidJob, Job};

    fn read(field: &str, text: &str) -> Result<Job, InvalidJob> {
        let fields = [("script", "1"), (field, text)];
        let pairs = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Job::from_hash("j".parse().expect("legal"), pairs)
    }

    #[test]
    fn arguments_keep_their_order_and_every_byte() {
        let job = read("args", r#"["b", "", "a b", "\n", "--x=é"]"#).expect("legal");
        assert_eq!(job.spec.args, ["b", "", "a b", "\n", "--x=é"]);
        let text = r#"["b","","a b","\n","--x=é"]"#;
        assert!(job.submitted_fields().contains(&("args", text.to_owned())));
    }

    #[test]
    fn parameters_keep_their_types_and_their_order() {
        let text = r#"{"n":5,"text":"5","of":{"b":0,"a":[1.5,null,true]}}"#;
        let job = read("params", text).expect("legal");
        assert!(job.submitted_fields().contains(&("params", text.to_owned())));
        assert_eq!(job.to_json()["params"]["of"]["a"][0], 1.5);
    }

    #[test]
    fn illegal_arguments_and_parameters_are_rejected_with_the_reason() {
        let many = json!(vec!["a"; ARGS_MAX + 1]).to_string();
        let large = json!(["a".repeat(GIVEN_BYTES_MAX + 1)]).to_string();
        let huge = json!({ "a": "a".repeat(GIVEN_BYTES_MAX) }).to_string();
        for (field, text, reason) in [
            ("args", "a b", "is not a JSON array of strings"),
            ("args", "[1]", "is not a JSON array of strings"),
            ("args", r#"["a\u0000b"]"#, "has an argument with a NUL byte"),
            ("args", &many, "has more than 1000 arguments"),
            ("args", &large, "has 65537 bytes, more than 65536"),
            ("params", "[1]", "is not a JSON object"),
            ("params", "x", "is not a JSON object"),
            (
                "params",
                r#"{"n":100000000000000000000}"#,
                "cannot be read: the number 100000000000000000000 does not fit into 64 bits and would lose \
                 digits; give it as a text, \"100000000000000000000\"",
            ),
            ("params", &huge, "has 65544 bytes, more than 65536"),
        ] {
            let error = read(field, text).expect_err(field);
            assert_eq!((error.field.as_str(), error.reason.as_str()), (field, reason));
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        read("params", &deep).expect_err("nested too deeply");
    }
}
