//! The API while Redis is away, and connections that are kept.

use serde_json::json;

use super::error;
use crate::support::{Hero, Redis, Served, request, wait_until};

#[test]
fn valid_token_is_not_refused_while_redis_is_away() {
    let mut redis = Redis::that_keeps();
    let api = Served::on(&redis);
    let new = |name: &str| {
        let done = api.hero.run(&["token", "new", name, "--scope", "read"]).code(0);
        format!("Bearer {}", done.stdout.trim_end())
    };
    let (used, unused) = (new("used"), new("unused"));
    let ask = |token: &str| {
        let info = request("system.info", &json!({}));
        api.tcp().post("/rpc", &[("authorization", token)], &info)
    };
    assert_eq!(ask(&used).status, 200);
    redis.kill();
    // More than the failed logins that are free: none of these is one.
    for _ in 0..6 {
        let answer = ask(&unused);
        assert_eq!((answer.status, error(&answer)), (503, -32603), "{}", answer.text());
        let said = answer.json()["error"].take();
        assert_eq!(said["data"]["retryable"], true, "{said}");
        assert!(said["message"].to_string().contains("cannot be reached"), "{said}");
    }
    wait_until("also the other is asked for again", || ask(&used).status == 503);
    let page = api.tcp().get(&format!("/?token={}", &unused["Bearer ".len()..]), &[]);
    assert_eq!(page.status, 503, "{}", page.text());
    assert!(!api.supervisor.err().contains("refused a login"), "{}", api.supervisor.err());
    redis.start_again();
    wait_until("both are valid again", || ask(&used).status == 200 && ask(&unused).status == 200);
}

#[test]
fn connection_is_kept_for_further_requests_until_it_is_idle() {
    let redis = Redis::start();
    let api = Served::with(Hero::on(&redis).set("api.client_timeout", "\"3s\""), &redis);
    let info = request("system.info", &json!({}));
    let mut link = api.unix();
    for _ in 0..3 {
        let answer = link.post("/rpc", &[], &info);
        assert_eq!((answer.status, answer.header("connection")), (200, None));
    }
    assert!(link.is_closed(), "idle for longer than api.client_timeout");
    let answer = api.unix().post("/rpc", &[("connection", "close")], &info);
    assert_eq!(answer.header("connection"), Some("close"));
}
