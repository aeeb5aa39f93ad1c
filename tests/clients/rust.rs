//! The example program of the Rust client.

use hero::client::Client;
use hero::config::JobConfig;

use crate::support::{Hero, Redis};

#[path = "../../examples/submit.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod submit;

#[tokio::test]
async fn its_example_follows_a_job_to_its_end() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").start();
    let client = Client::with(&redis.config("hero"), JobConfig::default()).expect("a client");
    let (log, output) = submit::submit_and_follow(&client).await.expect("the job finishes");
    assert_eq!(log, ["step 1", "step 2", "step 3"]);
    assert_eq!(output, "42");
}
