//! `hero token`: tokens are made once, kept as a hash, listed without their secret, and revoked.

use hero::client::Client;
use hero::config::JobConfig;

use crate::support::{Hero, Redis, keys};

#[test]
fn token_is_shown_once_and_only_its_hash_is_kept() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let new =
        ["token", "new", "ci", "--scope", "submit,read", "--expires", "90d", "--type", "osis"];
    let token = hero.run(&new).code(0).stdout.trim_end().to_owned();
    assert!(token.starts_with("hero_") && token.len() == 69, "{token}");
    let kept = redis.ask::<Vec<String>>(&format!("HGETALL {}", keys::tokens()));
    assert_eq!(kept.len(), 2);
    assert!(!kept.concat().contains(&token[5..]), "the secret is not kept");

    let listed = hero.run(&["token", "list"]).code(0).stdout;
    for part in ["ci", "read,submit", "type=osis", "in 89d23h"] {
        assert!(listed.contains(part), "{part} in\n{listed}");
    }
    // The tests give the program no USER.
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).expect("the users can be read");
    let made_by = format!(" {}@", user.expect("this user has a name").name);
    assert!(listed.contains(&made_by), "{made_by} in\n{listed}");
    hero.run(&new).code(65).says("there is a token ci already");
    hero.run(&["token", "revoke", "ci"]).code(0).stdout("ci revoked\n");
    hero.run(&["token", "revoke", "ci"]).code(66).says("there is no token ci");
    assert!(redis.ask::<Vec<String>>(&format!("HGETALL {}", keys::tokens())).is_empty());
}

#[tokio::test]
async fn rotated_token_has_two_secrets_until_the_old_one_is_dropped() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    let made = |args: &[&str]| hero.run(args).code(0).stdout.trim_end().to_owned();
    let old = made(&["token", "new", "ci", "--scope", "submit", "--type", "osis"]);
    let new = made(&["token", "rotate", "ci", "--expires", "90d"]);
    assert_ne!(old, new);
    let checked = async |token: &str| client.tokens().check(token).await.expect("Redis answers");
    let (first, second) = (checked(&old).await.expect("valid"), checked(&new).await);
    let second = second.expect("valid");
    assert_eq!((&first.bounds, first.scopes), (&second.bounds, second.scopes));
    assert!(first.replaced && first.expires_s.is_none() && second.expires_s.is_some());
    let listed = hero.run(&["token", "list"]).code(0).stdout;
    assert!(listed.contains("replaced"), "{listed}");
    hero.run(&["token", "rotate", "ci"]).code(65).says("has two secrets already");
    hero.run(&["token", "rotate", "ci", "--drop-old"]).code(0);
    assert!(checked(&old).await.is_none() && checked(&new).await.is_some());
    hero.run(&["token", "rotate", "ci", "--drop-old"]).code(66).says("has no old secret");
    hero.run(&["token", "rotate", "other"]).code(66).says("there is no token other");
    let changes = hero.run(&["audit", "--what", "token"]).code(0).stdout;
    assert!(changes.contains("token.rotate") && changes.contains("token.drop_old"), "{changes}");
    made(&["token", "rotate", "ci"]);
    hero.run(&["token", "revoke", "ci"]).code(0);
    assert!(redis.ask::<Vec<String>>(&format!("HGETALL {}", keys::tokens())).is_empty());
}

#[test]
fn login_that_may_not_write_tokens_is_referred_to_the_one_of_the_supervisor() {
    let redis = Redis::start();
    redis.run("ACL SETUSER client on >secret ~* +@all -hset");
    let file = redis.folder().join("client.password");
    std::fs::write(&file, "secret").expect("written");
    let hero = Hero::on(&redis)
        .set("redis.username", "\"client\"")
        .set("redis.password_file", &format!("{:?}", file.display().to_string()));
    hero.run(&["token", "new", "ci", "--scope", "read"])
        .code(77)
        .says("HERO_CONFIG=/etc/hero/supervisor.toml");
    redis.run("ACL LOG RESET");
}

#[test]
fn wrong_scope_type_or_name_is_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let unknown = ["token", "new", "a", "--scope", "read", "--type", "ruby"];
    hero.run(&unknown).code(65).says("`ruby` is not configured");
    hero.run(&["mcp", "--type", "ruby"]).code(65).says("`ruby` is not configured");
    hero.run(&["token", "new", "a", "--scope", "root"])
        .code(65)
        .says("read, submit, operate, admin or fleet");
    hero.run(&["token", "new", "a b", "--scope", "read"]).code(65).says("name of a token");
    hero.run(&["token", "new", "a", "--scope", "read", "--type", "a:b"]).code(65);
    hero.run(&["token", "new", "a"]).code(2);
}

#[tokio::test]
async fn only_a_known_token_that_holds_is_accepted() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    let made = |name: &str, expires: &str| {
        let args = ["token", "new", name, "--scope", "admin", "--expires", expires];
        hero.run(&args).code(0).stdout.trim_end().to_owned()
    };
    let (holds, over) = (made("holds", "1h"), made("over", "0s"));
    let checked = async |token: &str| client.tokens().check(token).await.expect("Redis answers");
    assert_eq!(checked(&holds).await.expect("accepted").name.as_str(), "holds");
    assert!(checked(&over).await.is_none());
    for wrong in ["", "hero_", &holds[1..], &holds.to_uppercase(), &format!("{holds}0")] {
        assert!(checked(wrong).await.is_none(), "{wrong}");
    }
    assert!(checked(&format!("hero_{}", "0".repeat(64))).await.is_none());
    made("new", "1h");
    let names: Vec<String> = client
        .tokens()
        .list()
        .await
        .expect("Redis answers")
        .into_iter()
        .map(|token| token.name.to_string())
        .collect();
    assert_eq!(names, ["holds", "new"], "an expired token makes room");
}
