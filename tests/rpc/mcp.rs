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
fn agent_runs_scripts_reads_jobs_and_gets_its_mistakes_as_errors() {
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
            tool(6, "check_script", json!({ "script": "x = 1\ny = = 2", "script_type": "python" })),
            tool(
                7,
                "check_script",
                json!({ "script": "let x = 1;\nlet = 2;", "script_type": "osis" }),
            ),
        ],
    );
    let found = |place: usize| looked[place]["result"]["structuredContent"].clone();
    assert_eq!((&found(0)["caller_id"], &found(0)["name"]), (&json!("mcp"), &json!("sum")));
    assert_eq!(found(1)["jobs"][0]["id"], id);
    assert_eq!(found(2)["lines"][0]["line"], "hi");
    assert_eq!(found(3)["output"], "42");
    assert!(found(4)["types"].as_array().expect("types").contains(&json!("osis")));
    let lines = [5, 6].map(|place| found(place)["errors"][0]["line"].clone());
    assert_eq!(lines, [json!(2), json!(2)], "counted from 1, also by another program");
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

#[test]
fn tool_for_every_machine_is_listed_and_called_with_its_scope_alone() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let script = json!({ "script": "1", "script_type": "osis" });
    for (scopes, is_offered) in [
        ("read,submit,operate,admin", false),
        ("read,submit", false),
        ("read,fleet", false),
        ("submit,fleet", true),
    ] {
        let name = scopes.replace(',', "-");
        let made = hero.run(&["token", "new", &name, "--scope", scopes]).code(0);
        let calls = [list.clone(), tool(2, "run_on_machines", script.clone())];
        let answers = talk(&hero, &["--token", made.stdout.trim()], &calls);
        let tools = answers[0]["result"]["tools"].as_array().expect("tools");
        let listed = tools.iter().any(|tool| tool["name"] == "run_on_machines");
        let refused = answers[1]["result"]["isError"] == true;
        assert_eq!((listed, refused), (is_offered, !is_offered), "{scopes}: {}", answers[1]);
    }
}

#[test]
fn batch_is_awaited_with_its_answers_and_the_ends_of_the_logs_of_those_that_failed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retries", "0");
    let _actor = hero.actor("bash-default-1").start();
    let made = hero.run(&["token", "new", "keeper", "--scope", "read,submit,fleet"]).code(0);
    let call = |name: &str, arguments: Value| {
        let answers = talk(&hero, &["--token", made.stdout.trim()], &[tool(1, name, arguments)]);
        answers[0]["result"].clone()
    };
    let script = "for n in $(seq 2000); do echo line $n; done; exit 3";
    let fails = json!({ "script": script, "script_type": "bash" });
    let failed = call("run_on_machines", fails.clone());
    let answer = &failed["structuredContent"]["answers"][0];
    assert_eq!(failed["isError"], json!(true), "{failed}");
    let log = answer["log"].as_str().expect("the end of a log");
    assert!(log.ends_with("line 2000") && !log.contains("line 1900"), "{log}");
    // The end of a log is its end also where a script ran alone.
    let alone = call("run_script", fails);
    let said = alone["content"][0]["text"].as_str().expect("text");
    assert!(said.contains("line 2000") && !said.contains("line 1000\n"), "{said}");
    let goes_on = json!({ "script": "echo done", "script_type": "bash", "wait": 0 });
    let batch = call("run_on_machines", goes_on)["structuredContent"]["id"].clone();
    let waited = call("wait_batch", json!({ "id": batch }))["structuredContent"].clone();
    assert_eq!((&waited["state"], &waited["finished"]), (&json!("finished"), &json!(1)));
    assert_eq!(waited["answers"][0]["output"], json!("done"), "{waited}");
    assert_eq!(waited["answers"][0]["machines"].as_array().map(Vec::len), Some(1), "{waited}");
    // A batch of a command line is one too, and is stopped.
    let lines =
        "{\"id\": \"one\", \"name\": \"first\", \"script_type\": \"osis\", \"script\": \"1\"}\n";
    hero.run_with_input(&["submit", "--batch", "-", "--id", "two"], lines).code(0);
    let open = call("wait_batch", json!({ "id": "two", "wait": 0 }))["structuredContent"].clone();
    assert_eq!((&open["state"], &open["waiting"]), (&json!("running"), &json!(1)), "{open}");
    assert_eq!(open["answers"][0]["names"], json!(["first"]), "{open}");
    assert_eq!(call("stop_batch", json!({ "id": "two" }))["isError"], json!(true), "of another");
    let sleeps = json!({ "script": "sleep 600", "script_type": "bash", "wait": 0 });
    let own = call("run_on_machines", sleeps)["structuredContent"]["id"].clone();
    call("stop_batch", json!({ "id": own }));
    let stopped = call("wait_batch", json!({ "id": own }));
    assert_eq!(stopped["structuredContent"]["state"], json!("cancelled"), "{stopped}");
    let misled = call("wait_job", json!({ "id": "two" }));
    assert!(
        misled["content"][0]["text"].as_str().unwrap_or_default().ends_with("; wait_batch"),
        "{misled}"
    );
}

/// Writes a page of text, a table that is larger than what comes in one answer, an image and an archive.
const FILES: &str = r#"
import os
folder = os.environ["HERO_OUTPUT_DIR"]
def write(name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
write("page.txt", "1234567\u00e9\n".encode() * 5000)
write("table.csv", b"1,2,3\n" * 400000)
write("plot.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
write("all.zip", b"PK\x03\x04" + bytes(range(256)))
print("x" * 5_000_000)
"#;

#[test]
fn agent_reads_large_outputs_and_files_as_text_in_parts_images_and_links() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.output_size_max", "\"8MiB\"");
    let _actor = hero.actor("python-default-1").start();
    let script = json!({ "script": FILES, "script_type": "python" });
    let ran = talk(&hero, &[], &[tool(1, "run_script", script)]).remove(0);
    let ran = &ran["result"];
    assert!(ran.to_string().len() < 40_000, "it is cut: {} bytes", ran.to_string().len());
    let about = &ran["structuredContent"];
    assert_eq!((&about["output_bytes"], &about["output"]), (&json!(5_000_000), &Value::Null));
    let said = |part: usize| ran["content"][part]["text"].as_str().expect("text").to_owned();
    assert_eq!(said(0), "x".repeat(32 << 10));
    assert_eq!(said(1), "4967232 bytes more: job_output with `offset` 32768");
    assert!(
        said(2).starts_with("files for get_file: ") && said(2).contains("plot.png (108 bytes)")
    );
    let id = about["id"].clone();
    let file = |name: &str, offset: u64| json!({ "id": id, "name": name, "offset": offset });
    let answers = talk(
        &hero,
        &[],
        &[
            tool(1, "get_file", file("page.txt", 0)),
            tool(2, "get_file", file("page.txt", 32_767)),
            tool(3, "get_file", file("table.csv", 2_399_994)),
            tool(4, "get_file", file("plot.png", 0)),
            tool(5, "get_file", file("all.zip", 0)),
            tool(6, "job_output", json!({ "id": id, "offset": 4_999_999 })),
            tool(7, "get_job", json!({ "id": id })),
            tool(8, "get_file", json!({ "id": id, "name": "page.txt", "limit": 1 })),
        ],
    );
    let content = |place: usize, part: usize| answers[place]["result"]["content"][part].clone();
    let page = content(0, 0)["text"].as_str().expect("text").to_owned();
    // The last character would be cut in two.
    assert_eq!(
        (page.len(), content(0, 1)["text"].is_string()),
        (32_767, true),
        "{}",
        content(0, 1)
    );
    assert_eq!(answers[0]["result"]["structuredContent"]["next"], 32_767);
    assert!(
        content(1, 0)["text"].as_str().expect("text").starts_with("\u{e9}\n1234"),
        "{}",
        content(1, 0)
    );
    assert_eq!(content(2, 0)["text"], "1,2,3\n");
    assert_eq!(content(2, 1), Value::Null, "nothing is left");
    assert_eq!(
        (content(3, 0)["type"].clone(), content(3, 0)["mimeType"].clone()),
        (json!("image"), json!("image/png"))
    );
    let link = content(4, 0);
    assert_eq!((&link["type"], &link["size"]), (&json!("resource_link"), &json!(260)));
    assert_eq!(content(5, 0)["text"], "x");
    assert!(content(6, 0)["text"].as_str().expect("text").contains("bytes more"));
    assert_eq!(answers[7]["result"]["isError"], true, "a limit that is too small");
    // The link leads to the file, and beside it stand the job and its log.
    let read = |id: u64, uri: &Value| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": { "uri": uri } });
    let (job, _) =
        link["uri"].as_str().and_then(|uri| uri.split_once("/files/")).expect("of a job");
    let found = talk(
        &hero,
        &[],
        &[
            read(1, &link["uri"]),
            read(2, &json!(job)),
            read(3, &json!(format!("{job}/log"))),
            read(4, &json!(format!("{job}none"))),
            read(5, &json!("file:///etc/passwd")),
            json!({ "jsonrpc": "2.0", "id": 6, "method": "resources/list" }),
        ],
    );
    let first = |place: usize| found[place]["result"]["contents"][0].clone();
    assert!(first(0)["blob"].as_str().expect("Base64").starts_with("UEsDBA"));
    assert!(first(1)["text"].as_str().expect("JSON").contains("\"status\":\"finished\""));
    assert_eq!(first(2)["mimeType"], "text/plain");
    assert!(found[3]["error"].is_object());
    assert_eq!(found[4]["error"]["code"], -32002);
    assert_eq!(found[5]["result"]["resources"][0]["uri"], json!(job));
    // A list that is not the whole names the next page.
    for _ in 0..20 {
        hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    }
    let list = |cursor: &Value| {
        let params = json!({ "cursor": cursor });
        let asked =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": params });
        talk(&hero, &[], &[asked])[0]["result"].clone()
    };
    let first = list(&Value::Null);
    let rest = list(&first["nextCursor"]);
    let lengths = [&first, &rest].map(|of| of["resources"].as_array().map_or(0, Vec::len));
    assert!(lengths[0] == 20 && lengths[1] > 0 && rest["nextCursor"].is_null(), "{lengths:?}");
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
        assert "run_script" in names and "run_on_machines" in names, names
        script = {"script": "40 + 2", "script_type": "osis"}
        done = await session.call_tool("run_script", script)
        assert done.content[0].text == "42", done
        wrong = await session.call_tool("run_script", {"script": "throw \"no luck\"", "script_type": "osis"})
        assert "no luck" in wrong.content[0].text, wrong
        resources = (await session.list_resources()).resources
        read = await session.read_resource(resources[-1].uri)
        assert '"output":"42"' in read.contents[0].text, read
        assert len((await session.list_resource_templates()).resource_templates) == 3
        prompts = (await session.list_prompts()).prompts
        assert [(of.name, of.arguments[0].name, of.arguments[0].required) for of in prompts] == [("sum", "rows", True)], prompts
        asked = await session.get_prompt("sum", {"rows": "[1, 2]"})
        assert "call_sum" in asked.messages[0].content.text, asked
        called = await session.call_tool("call_sum", {"rows": [1, 2]})
        assert called.content[0].text == "2", called
        refused = await session.call_tool("call_sum", {"rows": [1, "a"]})
        assert '"a"' in refused.content[0].text, refused
        fleet = await session.call_tool("run_on_machines", {**script, "at_a_time": 2, "stop_after": "50%"})
        assert '"output":"42"' in fleet.content[0].text, fleet
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
    let sum = "// /// hero\n// description = \"Counts rows\"\n// [params.rows]\n// type = \"array\"\n\
               // items = { type = \"integer\" }\n// required = true\n// ///\nparams.rows.len()\n";
    hero.run_with_input(&["script", "publish", "sum", "-", "-t", "osis"], sum).code(0);
    let made = hero.run(&["token", "new", "keeper", "--scope", "read,submit,fleet"]).code(0);
    let done = Command::new(pypi().expect("found"))
        .args(["-c", CLIENT, env!("CARGO_BIN_EXE_hero")])
        .env("HERO_MCP_TOKEN", made.stdout.trim())
        .env("HERO_CONFIG", hero.config_file())
        .output()
        .expect("python runs");
    assert_eq!(done.stdout, b"done\n", "{}", String::from_utf8_lossy(&done.stderr));
}
