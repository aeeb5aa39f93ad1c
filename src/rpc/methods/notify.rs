//! `notify.*`: notifications, the latest deliveries and a test.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::page_size;
use super::{CallContext, Result, Scope};
use crate::client::{HeldMessage, LatestDeliveries};
use crate::proto::notification::{DeliveryRecord, NotifyName};

pub(super) const DELIVERIES_MAX: usize = 500;
/// The longest wait for the result of a test.
const TEST_PATIENCE: Duration = Duration::from_secs(15);

methods! {
    /// Lists the notifications of the supervisor's configuration, what each holds, those that fail, and the latest
    /// deliveries, the newest first.
    "notify.list", Scope::Admin => list;
    /// Sends a test by a notification of the supervisors' configuration, and waits up to 15 s for its delivery.
    "notify.test", Scope::Admin => test;
}

/// The deliveries to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveriesToList {
    /// The most deliveries, up to 500; 50 without it.
    pub(super) limit: Option<usize>,
}

/// A notification of the configuration.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ConfiguredNotification {
    /// Its name, `[notify.NAME]`.
    pub(crate) name: String,
    /// The ways by which it tells: `webhook`, `mail`, `command`, `journal`.
    pub(crate) ways: Vec<String>,
    /// The events that it tells, such as `failed`, `held` or `cron_late`.
    pub(crate) on: Vec<String>,
}

/// The notifications and their latest deliveries.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct DeliveryList {
    /// The notifications that are configured here.
    pub(crate) configured: Vec<ConfiguredNotification>,
    /// Messages that are held until the `every` of a notification has passed.
    pub(crate) held: Vec<HeldMessage>,
    /// The ends of deliveries, the newest first.
    pub(crate) deliveries: Vec<DeliveryRecord>,
    /// The latest attempt of each notification whose latest attempt failed.
    pub(crate) failing: Vec<DeliveryRecord>,
}

async fn list(context: CallContext, params: DeliveriesToList) -> Result<DeliveryList> {
    context.needs_no_bounds("read deliveries of notifications")?;
    let limit = page_size(params.limit, DELIVERIES_MAX)?;
    let LatestDeliveries { recent, failing } =
        context.client.notifications().deliveries(limit).await?;
    let configured = context.config.notify.iter().map(|(name, notify)| ConfiguredNotification {
        name: name.to_string(),
        ways: notify.ways().into_iter().map(str::to_owned).collect(),
        on: notify.on.iter().map(|kind| kind.as_str().to_owned()).collect(),
    });
    let (configured, held) = (configured.collect(), context.client.notifications().held().await?);
    Ok(DeliveryList { configured, held, deliveries: recent, failing })
}

/// A notification to test.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NotificationToTest {
    /// Its name, `[notify.NAME]`.
    name: NotifyName,
}

/// The result of a test.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TestResult {
    /// The id of the message.
    id: String,
    /// Its delivery; none if no supervisor has tried it in time.
    pub(crate) delivery: Option<DeliveryRecord>,
}

async fn test(context: CallContext, params: NotificationToTest) -> Result<TestResult> {
    context.needs_no_bounds("test a notification")?;
    context.client.notifications().check(&params.name, &context.config).await?;
    let id = context.client.notifications().test(&params.name).await?;
    let delivery = context.client.notifications().await_delivery(&id, TEST_PATIENCE).await?;
    Ok(TestResult { id, delivery })
}
