//! The Model Context Protocol over HTTP.

use std::process::Command;

use serde_json::{Value, json};

use super::error;
use crate::support::http::Answer;
use crate::support::{Hero, Redis, Served, keys, needs, pypi, until, wait_until};

/// Sends a message of an agent with its headers.
fn send(api: &Served, token: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
    let accept = ("accept", "application/json, text/event-stream");
    let all = [&[("authorization", token), accept], headers].concat();
    api.tcp().post("/mcp", &all, &message.to_string())
}

fn token(api: &Served, name: &str, args: &[&str]) -> String {
    format!("Bearer {}", api.token(&[&[name], args].concat()))
}

#[test]
fn agent_has_the_rights_of_its_token_over_http() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let _actor = api.hero.actor("osis-default-1").start();
    let (reader, agent) = (
        token(&api, "reader", &["--scope", "read"]),
        token(&api, "agent", &["--scope", "read,submit", "--type", "osis"]),
    );
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let answer = send(&api, &agent, &[], &hello);
    assert_eq!((answer.status, answer.header("mcp-session-id").is_some()), (200, true));
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-06-18");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let version = [("mcp-protocol-version", "2025-06-18")];
    let noted = send(&api, &agent, &version, &note);
    assert_eq!((noted.status, noted.body.len()), (202, 0));
    let call = |token: &str, script_type: &str| {
        let arguments = json!({ "script": "40 + 2", "script_type": script_type });
        let params = json!({ "name": "run_script", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        send(&api, token, &version, &call).json()["result"].take()
    };
    let done = call(&agent, "osis");
    assert_eq!((&done["isError"], &done["content"][0]["text"]), (&json!(false), &json!("42")));
    let job = api.call("job.get", &json!({ "id": done["structuredContent"]["id"] }));
    assert_eq!(job["caller_id"], "agent");
    assert_eq!(call(&agent, "python")["isError"], true, "beyond its types");
    assert_eq!(call(&reader, "osis")["isError"], true, "without the scope submit");
    assert!(api.supervisor.err().contains("agent called job.run"), "{}", api.supervisor.err());
    // Nobody, a page of another origin, and what the server does not have.
    let nobody = api.tcp().post("/mcp", &[], &hello.to_string());
    assert_eq!((nobody.status, error(&nobody)), (401, -32001));
    assert!(nobody.header("www-authenticate").is_some());
    let page = send(&api, &agent, &[("origin", "http://evil.example")], &hello);
    assert_eq!(page.status, 403);
    assert_eq!(api.unix().get("/mcp", &[]).status, 405, "nothing is sent without a request");
    let old = send(&api, &agent, &[("mcp-protocol-version", "1999-01-01")], &hello);
    assert_eq!((old.status, error(&old)), (400, -32022));
    assert_eq!(error(&send(&api, &agent, &[], &json!([hello]))), -32600);
}

#[test]
fn agent_tells_events_to_jobs_within_its_bounds_alone() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis), &redis);
    let _actors =
        [api.hero.actor("bash-default-1").start(), api.hero.actor("osis-default-1").start()];
    let (reader, agent, operator) = (
        token(&api, "reader", &["--scope", "read"]),
        token(&api, "agent", &["--scope", "read,submit", "--type", "bash"]),
        token(&api, "operator", &["--scope", "read,submit,operate", "--type", "bash"]),
    );
    let bash = |who: &str| {
        format!(
            "[ -n \"$HERO_EVENT\" ] && echo \"$HERO_EVENT\" || echo '{{\"wait\": {{\"event\": \"ok\"{who}}}}}' >&$HERO_FD"
        )
    };
    let osis = "let came = event(); if came == () { wait(#{event: \"ok\"}); } came.who";
    let field = |id: &str, name: &str| redis.field(&keys::job(id), name);
    let submit = |id: &str, kind: &str, caller: &str, script: &str| {
        let args = ["submit", "-t", kind, "--id", id, "--caller", caller, "-e", script];
        api.hero.run(&args).code(0);
        wait_until("it waits", || field(id, "wait").is_some());
    };
    submit("own", "bash", "agent", &bash(""));
    submit("other", "bash", "ann", &bash(""));
    submit("named", "bash", "agent", &bash(", \"who\": [\"ann\"]"));
    submit("osis", "osis", "agent", osis);
    let tell = |token: &str, id: &str| {
        let arguments = json!({ "id": id, "event": "ok", "data": { "n": 1 } });
        let params = json!({ "name": "tell_job", "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let version = [("mcp-protocol-version", "2025-06-18")];
        send(&api, token, &version, &call).json()["result"].take()
    };
    for (who, token, id) in [
        ("a reader", &reader, "own"),
        ("an agent, a job of another caller", &agent, "other"),
        ("an agent whom the wait does not name", &agent, "named"),
        ("an agent, a job beyond its types", &agent, "osis"),
        ("an operator, a job beyond its types", &operator, "osis"),
        ("an agent, no job", &agent, "none"),
    ] {
        let told = tell(token, id);
        assert_eq!(told["isError"], true, "{who}: {told}");
    }
    for id in ["own", "other", "named", "osis"] {
        assert!(field(id, "wait").is_some() && field(id, "told_events").is_none(), "{id}");
    }
    for (token, id, who) in [(&agent, "own", "agent"), (&operator, "other", "operator")] {
        let told = tell(token, id);
        assert_eq!(told["structuredContent"]["result"], "told", "{told}");
        until(&redis, id, "finished");
        let output = api.hero.run(&["job", "output", id]).code(0).stdout;
        let came: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!((&came["who"], &came["data"]), (&json!(who), &json!({ "n": 1 })));
        assert_eq!(tell(token, id)["isError"], true, "it has ended");
    }
}

#[test]
fn request_says_its_version_and_its_headers_agree() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let agent = token(&api, "agent", &["--scope", "read"]);
    let message = |method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    };
    let headers = |method: &'static str, name: &'static str| {
        let version = ("mcp-protocol-version", "2026-07-28");
        vec![version, ("mcp-method", method), ("mcp-name", name)]
    };
    let told = message("server/discover", json!({}));
    let told = send(&api, &agent, &headers("server/discover", ""), &told).json();
    assert_eq!(told["result"]["supportedVersions"][0], "2026-07-28", "{told}");
    assert_eq!(told["result"]["resultType"], "complete");
    let call = message("tools/call", json!({ "name": "list_jobs", "arguments": {} }));
    let done = send(&api, &agent, &headers("tools/call", "list_jobs"), &call).json();
    assert_eq!(done["result"]["isError"], false, "{done}");
    let base64 = headers("tools/call", "=?base64?bGlzdF9qb2Jz?=");
    assert_eq!(send(&api, &agent, &base64, &call).status, 200);
    for wrong in [headers("tools/list", "list_jobs"), headers("tools/call", "run_script")] {
        let answer = send(&api, &agent, &wrong, &call);
        assert_eq!((answer.status, error(&answer)), (400, -32020));
    }
    let other = send(&api, &agent, &[("mcp-protocol-version", "2025-11-25")], &call);
    assert_eq!((other.status, error(&other)), (200, -32020));
    let unknown = send(&api, &agent, &headers("no/such", ""), &message("no/such", json!({})));
    assert_eq!((unknown.status, error(&unknown)), (404, -32601));
}

#[test]
fn revoked_token_ends_its_waits_and_the_rest_of_its_batch() {
    let redis = Redis::start();
    let api = Served::on(&redis);
    let agent = token(&api, "agent", &["--scope", "read,submit"]);
    let call = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let job = |id: &str| json!({ "job": { "id": id, "script": "1", "script_type": "osis" } });
    // No actor runs them.
    let batch = json!([
        call(1, "job.submit", job("first")),
        call(2, "job.wait", json!({ "id": "first", "wait": 3000 })),
        call(3, "job.submit", job("later")),
    ]);
    let headers = [("authorization", agent.as_str())];
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| api.tcp().post("/rpc", &headers, &batch.to_string()).json());
        wait_until("the batch runs", || redis.field(&keys::job("first"), "status").is_some());
        api.hero.run(&["token", "revoke", "agent"]).code(0);
        asked.join().expect("answered")
    });
    let code = |place: usize| answer[place]["error"]["code"].clone();
    assert_eq!(
        (&code(0), &code(1), &code(2)),
        (&Value::Null, &json!(-32001), &json!(-32001)),
        "{answer}"
    );
    assert_eq!(redis.field(&keys::job("later"), "status"), None, "it is not called");
}

const CLIENT: &str = r#"
import asyncio, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main(url, token):
    for mode in ("auto", "legacy"):
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "run_script" in names, names
            done = await client.call_tool("run_script", {"script": "40 + 2", "script_type": "osis"})
            assert done.content[0].text == "42", done
            script = {"script": "throw \"no luck\"", "script_type": "osis"}
            wrong = await client.call_tool("run_script", script)
            assert wrong.is_error and "no luck" in wrong.content[0].text, wrong
            steps = []
            async def told(progress, total, message):
                steps.append((progress, total, message))
            counts = {"script": "progress(0.25, \"a quarter\"); 42", "script_type": "osis"}
            done = await client.call_tool("run_script", counts, progress_callback=told)
            assert done.content[0].text == "42", done
            assert all(a[0] < b[0] for a, b in zip(steps, steps[1:])), steps
            first, second = [
                (await client.call_tool("start_session", {"script_type": "python"})).structured_content["id"] for _ in "12"
            ]
            async def run(id, script):
                return await client.call_tool("run_in_session", {"id": id, "script": script})
            kept = await run(first, "rows = [1, 2]; open('file', 'w').write('7')")
            assert kept.content[0].text == "1\n" and not kept.is_error, kept
            done = await run(first, "rows.append(4)\nsum(rows), open('file').read()")
            assert done.content[0].text == "(7, '7')\n", done
            apart = await run(second, "rows")
            assert apart.is_error and "NameError" in apart.content[0].text, apart
            for id in (first, second):
                ended = await client.call_tool("end_session", {"id": id})
                assert ended.structured_content["result"] == "ended", ended
            print(mode, client.protocol_version)

asyncio.run(main(*sys.argv[1:]))
"#;

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn official_python_client_lists_tools_and_runs_scripts_over_http() {
    if !needs("mcp of PyPI", || pypi().is_some()) {
        return;
    }
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("job.retries", "0"), &redis);
    let _actor = api.hero.actor("osis-default-1").start();
    let _python = api.hero.actor("python-default-1").tasks(2).start();
    let token = token(&api, "agent", &["--scope", "read,submit"]);
    let url = format!("http://127.0.0.1:{}/mcp", api.port);
    let done = Command::new(pypi().expect("found"))
        .args(["-c", CLIENT, &url, &token["Bearer ".len()..]])
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&done.stdout);
    let expected = "auto 2026-07-28\nlegacy 2025-11-25\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&done.stderr));
}
