//! Samples of the counters, one a minute of the last hour.

use hero::client::Client;
use hero::config::JobConfig;
use hero::store::Verdict;

use crate::support::{Life, World, job, keys};

#[tokio::test]
async fn one_sample_a_minute_is_retained_for_an_hour_and_two_give_the_rates_between_them() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    world.ended(&life, "a", Verdict::Finished { output: "1".into(), exit_code: None }).await;
    let mut kept = 0;
    // A minute may begin meanwhile.
    for _ in 0..5 {
        kept += u32::from(world.store.stats().keep_sample().await.expect("sampling"));
    }
    assert!((1..=2).contains(&kept), "{kept}");
    let key = keys::keys().samples();
    assert!(world.redis.ttl(&key) > 3600, "it is bounded");

    // The same sample, a minute earlier, after an hour of others.
    let first = world.redis.list(&key).remove(0);
    let mut sample: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    let at_us = sample["at_us"].as_i64().expect("a time");
    world.redis.delete(&key);
    for minute in (1..=70).rev() {
        sample["at_us"] = (at_us - minute * 60_000_000).into();
        world.redis.push(&key, &[sample.to_string()]);
    }
    world.ended(&life, "b", Verdict::Finished { output: "1".into(), exit_code: None }).await;
    world
        .ended(&life, "c", Verdict::Error { error: "x".to_owned(), exit_code: None, dead: false })
        .await;
    world.accepts(&[job("d")]).await;
    assert!(world.store.stats().keep_sample().await.expect("sampling"));
    assert_eq!(world.redis.list(&key).len(), 61);
    let client = Client::with(&world.redis.config("hero"), JobConfig::default()).expect("settings");
    let samples = client.stats().samples().await.expect("reading").samples;
    assert_eq!(samples.len(), 60);
    let (last, before) = (&samples[59], &samples[58]);
    assert_eq!((last.all.submitted, last.all.finished, last.all.failed), (3, 1, 1));
    assert_eq!((last.queued, last.held, last.running), (1, 0, 0));
    assert_eq!((before.all.submitted, before.all.finished), (0, 0));
    assert!((before.seconds - 60.0).abs() < 0.001 && last.seconds >= 60.0);
    assert_eq!(last.types.len(), 1);
    assert_eq!((last.types[0].script_type.as_str(), last.types[0].finished), ("osis", 1));
}
