//! Declared types: their functions, the checks of their fields, and the rights on them.

use crate::support::{Hero, Redis};

/// The declaration of the tasks of the tests.
const TASK: &str = "{ required = [\"title\"], fields = { name = \"string\", title = \"string\", \
                    description = \"string\", status = [\"pending\", \"in_progress\", \"done\"], \
                    priority = \"string\", assignee = \"string\", due = \"time\", tags = \"[string]\" } }";

fn world() -> (Redis, Hero) {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("osis.schema.project.task", TASK);
    (redis, hero)
}

fn run(hero: &Hero, script: &str) -> String {
    hero.run(&["exec", "-t", "osis", "-e", script]).code(0).stdout.trim_end().to_owned()
}

fn failure(hero: &Hero, script: &str) -> String {
    hero.run(&["exec", "-t", "osis", "-e", script]).code(1).stderr
}

#[test]
fn script_in_the_style_of_herolib_manages_its_tasks() {
    let (_redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    let script = r#"#!/usr/bin/env herodo
        let task1 = osis_project_task_new();
        task1.title = "Implement user authentication";
        task1.name = "auth";
        task1.status = "pending";
        task1.tags = ["backend", "security"];
        let said = [osis_project_task_set(task1) == task1.sid, task1.sid.len()];
        let task2 = #{title: "Write documentation"};
        osis_project_task_set(task2);

        let loaded = osis_project_task_get(task1.sid);
        said += [loaded.title, loaded.description == (), loaded.tags.len(), loaded.sid == loaded.id];
        loaded.status = "in_progress";
        osis_project_task_set(loaded);
        loaded.assignee = "ann";
        osis_project_task_set(loaded);
        said.push(osis_project_task_get(task1.sid).version);

        let all = osis_project_task_list();
        said += [all.len(), task2.sid in all, osis_project_task_list("", 1) == [all[0]]];
        said += [osis_project_task_exists(task1.sid), osis_project_task_exists("9999")];
        for sid in all { said.push(osis_project_task_delete(sid)); }
        said += [osis_project_task_delete(task1.sid), osis_project_task_list().len()];
        said
    "#;
    let expected = "[true,6,\"Implement user authentication\",true,2,true,3,2,true,true,true,false,\
                    true,true,false,0]";
    // Twice: deleted entries do not change the result.
    for _ in 0..2 {
        assert_eq!(run(&hero, script), expected);
    }
    let check = hero.run(&["script", "check", "-t", "osis", "-e", script]).code(0);
    check.stdout("");
    let wrong = ["script", "check", "-t", "osis", "-e", "osis_project_task_sett(1)"];
    let found = hero.run(&wrong).code(65).stdout;
    assert!(found.contains("osis_project_task_set`"), "{found}");
}

#[test]
fn objects_are_found_by_their_words_as_these_change() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("osis.schema.project.task", TASK);
    let with_text = |text: &str| TASK.replacen('{', &format!("{{ text = [{text}], "), 1);
    let find = |hero: &Hero, query: &str| run(hero, &format!("osis_project_task_find(`{query}`)"));
    let first = hero.actor("osis-default-1").start();
    run(
        &hero,
        r#"
        osis_project_task_set(#{sid: "t1", title: "Write the Report", tags: ["docs", "red tape"]});
        osis_project_task_set(#{sid: "t2", title: "Read the report", description: "Red."});
        osis_project_task_set(#{sid: "t3", title: "Sleep"});
        "#,
    );
    assert!(
        failure(&hero, "osis_project_task_find(\"x\")").contains("osis.schema.project.task.text")
    );
    drop(first);
    // The index of words is built for the objects that are there.
    let hero = Hero::on(&redis)
        .set("osis.schema.project.task", &with_text("\"title\", \"tags\", \"description\""));
    let _second = hero.actor("osis-default-1").start();
    for (query, expected) in [
        ("report", "[\"t1\",\"t2\"]"),
        ("REPORT NOT write", "[\"t2\"]"),
        ("write sleep", "[\"t1\",\"t3\"]"),
        ("red AND report", "[\"t1\",\"t2\"]"),
        ("tags:red", "[\"t1\"]"),
        ("re*", "[\"t1\",\"t2\"]"),
        ("rep", "[]"),
    ] {
        assert_eq!(find(&hero, query), expected, "{query}");
    }
    assert_eq!(run(&hero, "osis_project_task_find(\"report\", \"t1\", 5)"), "[\"t2\"]");
    run(
        &hero,
        r#"
        let t = osis_project_task_get("t1");
        t.title = "Write the letter";
        osis_project_task_set(t);
        osis_project_task_delete("t2");
        osis_project_task_set(#{sid: "t4", title: "Report again"});
        "#,
    );
    for (query, expected) in
        [("report", "[\"t4\"]"), ("letter", "[\"t1\"]"), ("write", "[\"t1\"]"), ("red", "[\"t1\"]")]
    {
        assert_eq!(find(&hero, query), expected, "{query}");
    }
    for n in 1..=4 {
        run(&hero, &format!("osis_project_task_delete(\"t{n}\")"));
    }
    assert_eq!(redis.keys("hero:meta:osis:"), Vec::<String>::new());
}

#[test]
fn missing_object_and_wrong_field_are_errors_in_both_styles() {
    let (_redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    for (script, message) in [
        ("osis_project_task_get(\"9999\")", "osis_project_task_get 9999: object not found"),
        (
            "osis_project_task_set(#{name: \"a\"})",
            "osis_project_task_set: title is missing, which is required (osis.schema.project.task)",
        ),
        ("osis_project_task_set(#{title: 1})", "title must be a string, not 1"),
        ("osis_project_task_set(#{title: \"a\", titel: 1})", "unknown field `titel`"),
        ("osis_set(\"project_task\", #{title: \"a\", status: \"x\"})", "status must be one of"),
        ("osis_batch([#{set: \"project_task\", object: #{id: \"a\"}}])", "title is missing"),
        (
            "osis_project_task_set(#{title: \"a\", sid: \"a\", id: \"b\"})",
            "its sid and its id differ",
        ),
        (
            "let t = #{title: \"a\"}; osis_project_task_set(t); let u = osis_project_task_get(t.sid); \
             let v = osis_project_task_get(t.sid); osis_project_task_set(u); osis_project_task_set(v)",
            "stale version",
        ),
    ] {
        let said = failure(&hero, script);
        assert!(said.contains(message), "{script}: {said}");
    }
    // One object, by its id in the one style and by its sid in the other.
    let both = "osis_set(\"project_task\", #{id: \"t1\", title: \"a\"}); \
                let t = osis_project_task_get(\"t1\"); t.title = \"b\"; osis_set(\"project_task\", t); \
                [t.sid, osis_get(\"project_task\", \"t1\").title, osis_get(\"project_task\", \"t2\")]";
    assert_eq!(run(&hero, both), "[\"t1\",\"b\",null]");
}

#[test]
fn rights_of_groups_decide_who_reads_and_writes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("osis.schema.project.task", TASK)
        .set("osis.schema.open.note", "{ fields = { text = \"string\" } }")
        .set("osis.groups.admins", "[\"ann\"]")
        .set("osis.groups.editors", "[\"bob\", \"@admins\"]")
        .set("osis.groups.readers", "[\"cas\"]")
        .set("osis.rights.project", "{ write = [\"editors\"], read = [\"readers\"] }");
    let _osis = hero.actor("osis-default-1").start();
    let write = "osis_project_task_set(#{sid: \"t1\", title: \"a\"})";
    let read = "osis_project_task_get(\"t1\").title";
    for (caller, script, denied) in [
        ("ann", write, None),
        ("bob", write, None),
        ("bob", read, None),
        ("cas", read, None),
        ("cas", write, Some("write")),
        ("cas", "osis_project_task_new()", Some("write")),
        ("cas", "osis_project_task_delete(\"t1\")", Some("write")),
        ("cas", "osis_set(\"project_task\", #{title: \"a\"})", Some("write")),
        ("cas", "osis_batch([#{delete: \"project_task\", id: \"t1\"}])", Some("write")),
        ("dora", read, Some("read")),
        ("dora", "osis_get(\"project_task\", \"t1\")", Some("read")),
        ("dora", "osis_find(\"project_task\", \"\")", Some("read")),
        ("dora", "osis_project_task_list()", Some("read")),
        ("dora", "osis_project_task_exists(\"t1\")", Some("read")),
        ("", read, Some("read")),
        ("dora", "osis_open_note_set(#{text: \"a\"})", None),
        ("dora", "osis_set(\"project\", #{text: \"a\"})", None),
    ] {
        let exec = ["exec", "-t", "osis", "--caller", caller, "--context", "c", "-e", script];
        let done = hero.run(&exec);
        match denied {
            None => drop(done.code(0)),
            Some(right) => {
                let why = format!(
                    "not allowed: osis.rights.project does not give the right to {right} to the \
                     caller `{caller}`"
                );
                done.code(1).says(&why);
            }
        }
    }
}
