//! The server of the Model Context Protocol, by lines of JSON and by the official Python client.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Hero, Redis, needs, pypi};

/// Sends messages to `hero mcp`, and returns its answers by the ids of the requests.
fn talk(hero: &Hero, args: &[&str], messages: &[Value]) -> Vec<Value> {
    let input: Vec<String> = messages.iter().map(|message| format!("{message}\n")).collect();
    let done = hero.run_with_input(&[&["mcp"], args].concat(), &input.concat()).code(0);
    let answers = done.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let mut answers: Vec<Value> = answers.collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[expect(clippy::needless_pass_by_value, reason = "each is written where it is passed")]
fn tool(id: u64, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn agent_runs_scripts_looks_at_jobs_and_is_told_of_its_mistakes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _actor = hero.actor("osis-default-1").start();
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} });
    let script = |text: &str| json!({ "script": text, "script_type": "osis", "name": "sum" });
    let answers = talk(
        &hero,
        &[],
        &[
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
            json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }),
            tool(4, "run_script", script("print(\"hi\"); 40 + 2")),
            tool(5, "run_script", script("throw \"no luck\"")),
            tool(6, "run_script", json!({ "script": "1" })),
            tool(7, "no_tool", json!({})),
            json!({ "jsonrpc": "2.0", "id": 8, "method": "no/method" }),
        ],
    );
    assert_eq!(answers.len(), 8, "{answers:?}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    let tools = answers[1]["result"]["tools"].as_array().expect("tools").clone();
    let run = tools.iter().find(|tool| tool["name"] == "run_script").expect("a tool");
    assert_eq!(run["inputSchema"]["required"], json!(["script", "script_type"]));
    assert_eq!(answers[2]["result"], json!({}));
    let good = &answers[3]["result"];
    assert_eq!((&good["content"][0]["text"], &good["isError"]), (&json!("42"), &json!(false)));
    assert_eq!(good["structuredContent"]["log"], "hi");
    let failed = &answers[4]["result"];
    assert!(failed["content"][0]["text"].to_string().contains("no luck"), "{failed}");
    assert_eq!(
        (&failed["isError"], &answers[5]["result"]["isError"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&answers[6]["error"]["code"], &answers[7]["error"]["code"]),
        (&json!(-32602), &json!(-32601))
    );
    // Its jobs have its name, and it looks at them.
    let id = good["structuredContent"]["id"].clone();
    let looked = talk(
        &hero,
        &[],
        &[
            tool(1, "get_job", json!({ "id": id })),
            tool(2, "list_jobs", json!({ "status": "finished" })),
            tool(3, "follow_job", json!({ "id": id, "wait": 0 })),
            tool(4, "wait_job", json!({ "id": id })),
            tool(5, "script_types", json!({})),
        ],
    );
    let found = |place: usize| looked[place]["result"]["structuredContent"].clone();
    assert_eq!((&found(0)["caller_id"], &found(0)["name"]), (&json!("mcp"), &json!("sum")));
    assert_eq!(found(1)["jobs"][0]["id"], id);
    assert_eq!(found(2)["lines"][0]["line"], "hi");
    assert_eq!(found(3)["output"], "42");
    assert!(found(4)["types"].as_array().expect("types").contains(&json!("osis")));
}

#[test]
fn agent_is_held_to_its_bounds_and_changes_its_own_jobs_only() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "other", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "python", "--id", "hidden", "-e", "1"]).code(0);
    let bounds = ["--type", "osis", "--caller", "agent"];
    let python = json!({ "script": "1", "script_type": "python" });
    let own = json!({ "script": "1", "script_type": "osis" });
    let answers = talk(
        &hero,
        &bounds,
        &[
            tool(1, "submit_job", python),
            tool(2, "stop_job", json!({ "id": "other" })),
            tool(3, "get_job", json!({ "id": "hidden" })),
            tool(4, "get_job", json!({ "id": "other" })),
            tool(5, "submit_job", own),
        ],
    );
    let is_error = |place: usize| answers[place]["result"]["isError"] == true;
    let errors: Vec<bool> = (0..5).map(is_error).collect();
    assert_eq!(errors, [true, true, true, false, false], "{answers:?}");
    let id = &answers[4]["result"]["structuredContent"]["id"];
    let stopped = talk(&hero, &bounds, &[tool(1, "stop_job", json!({ "id": id }))]);
    assert_eq!(stopped[0]["result"]["structuredContent"]["result"], "stopped", "{stopped:?}");
}

#[test]
fn agent_has_the_rights_of_its_token() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let made = hero.run(&["token", "new", "reader", "--scope", "read"]).code(0);
    let token = made.stdout.trim();
    let job = json!({ "script": "1", "script_type": "osis" });
    let calls = [tool(1, "submit_job", job), tool(2, "list_jobs", json!({}))];
    let answers = talk(&hero, &["--token", token], &calls);
    let is_error = |place: usize| answers[place]["result"]["isError"].clone();
    assert_eq!((is_error(0), is_error(1)), (json!(true), json!(false)), "{answers:?}");
    hero.run(&["mcp", "--token", "hero_none"]).code(77);
}

const CLIENT: &str = r#"
import asyncio, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert "run_script" in names, names
        script = {"script": "40 + 2", "script_type": "osis"}
        done = await session.call_tool("run_script", script)
        assert done.content[0].text == "42", done
        wrong = await session.call_tool("run_script", {"script": "throw \"no luck\"", "script_type": "osis"})
        assert "no luck" in wrong.content[0].text, wrong
        print("done")

asyncio.run(main())
"#;

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn official_python_client_lists_tools_and_runs_scripts() {
    if !needs("mcp of PyPI", || pypi().is_some()) {
        return;
    }
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _actor = hero.actor("osis-default-1").start();
    let done = Command::new(pypi().expect("found"))
        .args(["-c", CLIENT, env!("CARGO_BIN_EXE_hero")])
        .env("HERO_CONFIG", hero.config_file())
        .output()
        .expect("python runs");
    assert_eq!(done.stdout, b"done\n", "{}", String::from_utf8_lossy(&done.stderr));
}
