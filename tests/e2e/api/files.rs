//! Files of jobs over the API.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::error;
use crate::support::{Redis, Served, request};

#[test]
fn job_is_submitted_with_files_and_those_that_it_leaves_are_read() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let _bash = api.hero.actor("bash-default-1").start();
    let script = "cat \"$HERO_INPUT_DIR/a.bin\" - > \"$HERO_OUTPUT_DIR/both\"";
    let job = json!({ "script_type": "bash", "script": script });
    let given = |name: &str, content: &str| json!({ "job": job, "inputs": { name: content }, "stdin": STANDARD.encode("end") });
    let submitted = api.call("job.submit", &given("a.bin", &STANDARD.encode(b"\xff\0")));
    let id = json!({ "id": submitted["id"] });
    let ended = api.call("job.wait", &id);
    assert_eq!(
        (&ended["input_files"], &ended["output_files"]),
        (&json!(["a.bin", "-"]), &json!(["both"]))
    );
    let files = api.call("job.files", &id);
    let both = json!({ "name": "both", "size": 5, "kind": "output" });
    let own = json!({ "name": "a.bin", "size": 2, "kind": "input" });
    let stdin = json!({ "name": "-", "size": 3, "kind": "stdin" });
    assert_eq!(files["files"], json!([both, own, stdin]));
    let file = |name: &str| json!({ "id": submitted["id"], "name": name });
    let read = api.call("job.file", &file("both"));
    assert_eq!(read["content"], STANDARD.encode(b"\xff\0end"));
    for (method, params) in [
        ("job.file", file("other")),
        ("job.submit", given("../a", "")),
        ("job.submit", given("a", "no base64!")),
        ("job.run", json!({ "job": { "script_type": "osis", "script": "1" }, "stdin": "" })),
    ] {
        let answer = api.unix().post("/rpc", &[], &request(method, &params));
        assert!([-32_002, -32_602].contains(&error(&answer)), "{method}");
    }
}
