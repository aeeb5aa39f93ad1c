//! Routes that name a published script.

use serde_json::{Value, json};

use super::Broker;
use crate::support::rabbitmq::has_rabbitmq;
use crate::support::wait_until;

const BILL: &str = "// /// hero\n// timeout = \"20s\"\n// [params.id]\n// type = \"integer\"\n// required = true\n\
                    // [params.copies]\n// type = \"integer\"\n// default = 1\n// ///\n\
                    `${json_parse(INPUTS.message).operation} ${params.id} x${params.copies}`";
const ROUTES: &str = "[[amqp.route]]\nkey = \"adm\"\noperation = \"bill\"\nuses = \"bill@1\"\n\
     [[amqp.route]]\nkey = \"adm\"\noperation = \"last\"\nuses = \"bill\"\nack = \"end\"\ntimeout = \"20s\"\n\
     [[amqp.route]]\nkey = \"adm\"\noperation = \"none\"\nuses = \"bil\"\n";

#[test]
fn message_becomes_a_job_of_a_published_script_with_its_data_as_checked_parameters() {
    if !has_rabbitmq() {
        return;
    }
    let broker = Broker::with(ROUTES);
    let _actor = broker.hero.actor("osis-default-1").start();
    let publish = |text: &str| {
        let args = ["script", "publish", "bill", "-t", "osis", "-e", text];
        broker.hero.run(&args).code(0);
    };
    publish(BILL);
    let _process = broker.hero.actor("broker").start();
    assert_eq!(broker.result("adm", "bill", "", "{\"id\": 7}"), json!("bill 7 x1"));
    publish(&BILL.replace(" x", " copies "));
    let data = "{\"id\": 8, \"copies\": 2}";
    assert_eq!(broker.result("adm", "bill", "", data), json!("bill 8 x2"), "the named version");
    assert_eq!(broker.result("adm", "last", "", data), json!("last 8 copies 2"));
    let listed = broker.json(&["job", "list"])["jobs"].take();
    let ids = listed.as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str());
    let mut uses: Vec<Value> = ids
        .map(|id| {
            let job = broker.json(&["job", "show", id]);
            assert_eq!(job["script_digest"].as_str().map(str::len), Some(64), "{job}");
            json!([job["uses"], job["params"]["id"], job["caller_id"]])
        })
        .collect();
    uses.sort_by_key(ToString::to_string);
    let wanted =
        [json!(["bill@1", 7, "amqp"]), json!(["bill@1", 8, "amqp"]), json!(["bill@2", 8, "amqp"])];
    assert_eq!(uses, wanted);
    for (operation, data, said) in [
        ("bill", "{\"id\": \"x\"}", "id: \"x\" is text: expected integer"),
        (
            "bill",
            "{\"id\": 7, \"copes\": 2}",
            "`copes` is an unknown parameter; did you mean `copies`?",
        ),
        ("last", "null", "id: is missing; it is required"),
        ("last", "[7]", "the data must be an object"),
        ("none", "{}", "`bil` is not a published script; did you mean `bill`?"),
    ] {
        let error = broker.ask("adm", operation, "", data)["error"].take();
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(said) && error["retryable"] == json!(false), "{error}");
    }
    wait_until("the refused ones are dead letters", || broker.dead().len() == 5);
}
