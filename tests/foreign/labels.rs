//! Programs that give jobs an expression over labels, with plain commands of Redis.

use super::{Program, bash};
use crate::support::{Redis, until, wait_until};

#[test]
fn job_of_a_plain_client_goes_where_labels_match_from_the_list_of_its_expression_or_its_type() {
    let redis = Redis::start();
    let hero = bash(&redis)
        .set("unit.bash-default-1.labels.role", "\"web\"")
        .set("unit.bash-default-2.labels.role", "\"db\"");
    let (_supervisor, _web) = (hero.supervisor().start(), hero.actor("bash-default-1").start());
    let job = |id: &str| format!("hero:job:{id}");
    let push = |words: &[&str]| drop(Program::run(&redis, "where_client", words));
    push(&["own", "role=\"db\""]);
    push(&["of-type", "role = db", "hero:q:work:type:bash"]);
    push(&["urgent", "role = db", "hero:q:work:type:bash:prio:0"]);
    push(&["web", "role = 'web'"]);
    until(&redis, "web", "finished");
    wait_until("each waits in the list of its expression", || {
        redis.keys("hero:q:work:type:bash:where:").len() == 3
    });
    for id in ["own", "of-type", "urgent"] {
        assert_eq!(redis.field(&job(id), "status").as_deref(), Some("dispatched"));
    }
    let _db = hero.actor("bash-default-2").start();
    for id in ["own", "of-type", "urgent"] {
        until(&redis, id, "finished");
        assert_eq!(redis.field(&job(id), "actor").as_deref(), Some("bash:default:2"), "{id}");
    }
    assert_eq!(redis.field(&job("urgent"), "priority").as_deref(), Some("0"));
    for (id, text, list, said) in [
        (
            "typo",
            "role is db",
            "",
            "invalid job: where `role is db` is not an expression: at character 6",
        ),
        (
            "group",
            "role = db",
            "hero:q:work:type:bash:group:io",
            "where cannot stand beside a group",
        ),
        (
            "other",
            "role = db",
            "hero:q:work:type:bash:where:0123456789012345678901234567890123456789",
            "where is not the expression of its queue",
        ),
    ] {
        let words: Vec<&str> =
            [id, text, list].into_iter().filter(|word| !word.is_empty()).collect();
        push(&words);
        until(&redis, id, "error");
        let error = redis.field(&job(id), "error").unwrap_or_default();
        assert!(error.contains(said), "{error}");
    }
}
