//! The outputs of other jobs that a running script asks for.

use std::path::Path;

use serde_json::{Value, json};

use super::{field, until};
use crate::support::{Hero, Redis, needs};

/// The script of each language that prints what it is told about the job `a`.
const ASKING: [(&str, &str); 4] = [
    (
        "bash",
        "printf '{\"inputs\": \"a\"}\\n' >&\"$HERO_FD\"\nread -r answer <&\"$HERO_FD_IN\"\nprintf '%s\\n' \"$answer\"",
    ),
    (
        "node",
        "const fs = require('fs'), line = Buffer.alloc(1 << 20);\n\
         fs.writeSync(Number(process.env.HERO_FD), JSON.stringify({ inputs: 'a' }) + '\\n');\n\
         console.log(line.toString('utf8', 0, fs.readSync(Number(process.env.HERO_FD_IN), line)));",
    ),
    ("python", "import hero, json\nprint(json.dumps({'ok': hero.job('a')}))"),
    ("sal", "to_json(#{ok: hero_job(\"a\")})"),
];

fn output(hero: &Hero, id: &str) -> Value {
    serde_json::from_str(&hero.run(&["job", "output", id]).code(0).stdout).expect("JSON")
}

#[test]
fn script_gets_the_output_of_an_earlier_job_of_its_graph_in_every_language() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _supervisor = hero.supervisor().start();
    let _bash = hero.actor("bash-default-1").start();
    let has_node = needs("node", || Path::new("/usr/bin/node").exists());
    for (kind, script) in ASKING {
        if kind == "node" && !has_node {
            continue;
        }
        let _actor = (kind != "bash").then(|| hero.actor(&format!("{kind}-default-1")).start());
        let graph = format!(
            "[job.a]\nid = \"{kind}-a\"\ntype = \"bash\"\nscript = \"echo 41\"\n\
             [job.b]\nid = \"{kind}-b\"\nafter = [\"a\"]\ntype = \"bash\"\nscript = \"echo 42\"\n\
             [job.c]\nid = \"{kind}-c\"\nafter = [\"b\"]\ntype = \"{kind}\"\nscript = '''\n{script}\n'''\n"
        );
        std::fs::write(redis.folder().join("g.toml"), graph).expect("written");
        hero.run(&["submit", "--graph", "g.toml"]).code(0);
        let id = format!("{kind}-c");
        until(&redis, &id, "finished");
        // Python and Rhai have the value of the text.
        let text = if ["bash", "node"].contains(&kind) { json!("41") } else { json!(41) };
        let told =
            json!({ "ok": { "id": format!("{kind}-a"), "status": "finished", "output": text } });
        assert_eq!(output(&hero, &id), told, "{kind}");
    }
}

#[test]
fn script_gets_each_child_as_it_is_now() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.may_submit", "[\"python\"]");
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("python-default-1").start();
    let script = "import hero\n\
        jobs = {'ok': 'print(7)', 'bad': 'raise SystemExit(\"no\")', 'small': 'print(\"x\" * 200000)', \
                'large': 'print(\"x\" * 300000)'}\n\
        ids = {name: hero.submit(script, name=name) for name, script in jobs.items()}\n\
        ids['later'] = hero.submit('1', name='later', at='2100-01-01T00:00:00Z')\n\
        told = {}\n\
        for name, id in ids.items():\n\
        \x20   try:\n        found = hero.job(name)\n        assert found['id'] == hero.job(id)['id'] == id\n\
        \x20       if found['status'] == 'finished': assert hero.inputs(name) == hero.inputs(id) == found.get('output')\n\
        \x20       told[name] = [found['status'], found.get('output'), found.get('error')]\n\
        \x20       if name == 'small' and 'output' in found: told[name][1] = len(found['output'])\n\
        \x20   except hero.Refused as why: told[name] = str(why)\n\
        hero.output(told)";
    hero.run(&["exec", "-t", "python", "--id", "p", "-e", script]).code(0);
    let first = output(&hero, "p");
    assert_eq!(first["later"], json!(["scheduled", null, null]));
    let children: Vec<String> =
        serde_json::from_str(&field(&redis, "p", "children").expect("children")).expect("JSON");
    for (id, end) in children.iter().zip(["finished", "error", "finished", "finished"]) {
        until(&redis, id, end);
    }
    let again = || {
        hero.run(&["job", "retry", "p"]).code(0);
        hero.run(&["job", "wait", "p"]).code(0);
        output(&hero, "p")
    };
    let told = again();
    assert_eq!(told["ok"], json!(["finished", 7, null]));
    assert_eq!((&told["bad"][0], &told["bad"][1]), (&json!("error"), &json!(null)));
    assert!(told["bad"][2].as_str().is_some_and(|why| why.contains("no")), "{told}");
    assert_eq!(told["small"], json!(["finished", 200_000, null]));
    assert!(told["large"].as_str().is_some_and(|why| why.contains("300000 bytes")), "{told}");
    hero.run(&["job", "delete", &children[0]]).code(0);
    assert_eq!(again()["ok"], json!(["gone", null, null]));
}
