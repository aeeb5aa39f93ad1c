//! A validator of JSON Schema, draft 7: the one of Python.

use std::process::{Command, Output};

use serde_json::Value;

use super::needs;

const IMPORTS: &str = "from jsonschema import Draft7Validator";

/// Returns whether the running test has the validator.
pub(crate) fn needs_json_schema() -> bool {
    needs("python3-jsonschema", || python(IMPORTS, &[]).is_some_and(|done| done.status.success()))
}

/// Returns why a document does not follow the schema in a file; `None` if it does.
pub(crate) fn fault_by_schema(schema: &str, document: &Value) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("document.json");
    std::fs::write(&file, document.to_string()).expect("written");
    let code = format!(
        "{IMPORTS}\nimport json, sys\nschema, document = [json.load(open(f)) for f in sys.argv[1:]]\n\
         Draft7Validator.check_schema(schema)\nDraft7Validator(schema).validate(document)"
    );
    let done = python(&code, &[schema, file.to_str().expect("UTF-8")]).expect("python3 runs");
    (!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn python(code: &str, args: &[&str]) -> Option<Output> {
    // The packages of Debian belong to its own Python.
    Command::new("/usr/bin/python3").arg("-c").arg(code).args(args).output().ok()
}
