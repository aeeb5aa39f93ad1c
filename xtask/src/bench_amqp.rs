//! Measures of the brokers beside bare consumers of the same RabbitMQ, in turns: the round trip of a ping,
//! and messages through to finished jobs beside a relay that consumes, publishes, waits for the
//! confirmation and acknowledges. `xtask/bench-amqp.sh` starts a private RabbitMQ for it.

use std::future::poll_fn;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_core::Stream;
use hero::amqp::link::{DIRECT_REPLY, Link};
use hero::amqp::topology::{AmqpQueue, EVENTS, pools};
use hero::client::Client;
use hero::config::Config;
use hero::proto::target::ScriptType;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions,
};
use lapin::types::FieldTable;
use lapin::uri::AMQPUri;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer};
use tokio::task::JoinSet;

use super::bench::{Done, millis, per_second, print, quantile};

/// The rounds of each measure; the figure is their median.
const ROUNDS: usize = 3;
const PINGS: usize = 1000;
const WARM_UPS: usize = 100;
/// The messages that a publisher sends before it waits for their confirmations.
const IN_FLIGHT: usize = 256;
const PATIENCE: Duration = Duration::from_mins(1);
const BARE: &str = "bench.bare";
const RELAYED: &str = "bench.relayed";
const BODY: &[u8] =
    br#"{"template": "bench", "data": {"text": "0123456789abcdef0123456789abcdef"}}"#;

/// Sizes of the measure
#[derive(Debug, clap::Args)]
pub(crate) struct AmqpSizes {
    /// The messages of each round
    #[arg(long, default_value_t = 20_000)]
    messages: usize,
}

/// Measures with the RabbitMQ of the configuration, and the Redis and actor of `hero dev`.
pub(crate) async fn run(client: &Client, config: &Config, sizes: &AmqpSizes) -> Done {
    if config.amqp.url.is_empty() || config.amqp.routes.is_empty() {
        return Err("amqp.url and a route are not set; run xtask/bench-amqp.sh".into());
    }
    let bench = AmqpBench::open(client, config, sizes.messages).await?;
    let (mut pings, mut bare_pings) = (Vec::new(), Vec::new());
    let (mut jobs, mut relays) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (bare, ping) = bench.pings().await?;
        bare_pings.push(bare);
        pings.push(ping);
        relays.push(bench.relay().await?);
        jobs.push(bench.jobs().await?);
    }
    report("bare ping, p50", &bare_pings, "ms");
    report("ping of a broker, p50", &pings, "ms");
    report("ping of a broker / bare", &ratios(&pings, &bare_pings), "times");
    report("bare relay", &relays, "messages/s");
    report("messages to finished jobs", &jobs, "messages/s");
    report("messages to finished jobs / bare relay", &ratios(&jobs, &relays), "times");
    bench.link.close().await;
    Ok(())
}

fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

/// Prints the median and the spread of the rounds.
fn report(name: &str, figures: &[f64], unit: &str) {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    print(name, at(sorted.len() / 2), unit);
    print(&format!("  {name}, least"), at(0), unit);
    print(&format!("  {name}, most"), at(sorted.len().saturating_sub(1)), unit);
}

struct AmqpBench<'a> {
    client: &'a Client,
    config: &'a Config,
    link: Link,
    /// The queue of the brokers.
    queue: String,
    /// The connection of the requester and publisher, and one of the bare consumers.
    own: Connection,
    bare: Connection,
    messages: usize,
}

/// A process that ends with this value.
struct BrokerProcess(Child);

impl BrokerProcess {
    /// Starts a broker by the configuration of this process. `hero dev` puts `hero` into the path.
    #[expect(clippy::disallowed_methods, reason = "the broker is measured as a process of its own")]
    fn start() -> Done<Self> {
        let mut command = Command::new("hero");
        command.args(["run", "broker"]).stdin(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'a> AmqpBench<'a> {
    async fn open(client: &'a Client, config: &'a Config, messages: usize) -> Done<Self> {
        let link = Link::open(&config.amqp, "bench")?;
        let pool = pools(&config.amqp, None).into_iter().next().ok_or("the mode is not unified")?;
        link.declare_exchanges().await?;
        link.declare_work(&pool.work).await?;
        for name in [BARE, RELAYED] {
            let arguments = std::collections::BTreeMap::new();
            let queue = AmqpQueue { name: name.to_owned(), arguments, binding: None };
            link.declare_queue(&queue).await?;
            link.purge(name).await?;
        }
        let mut uri: AMQPUri = config.amqp.url.expose().parse()?;
        uri.vhost = config.amqp.url.vhost();
        if let Some(password) = config.amqp.password()? {
            password.expose().clone_into(&mut uri.authority.userinfo.password);
        }
        let connect = || Connection::connect_uri(uri.clone(), ConnectionProperties::default());
        let (own, bare) = (connect().await?, connect().await?);
        Ok(Self { client, config, link, queue: pool.work.queue.name, own, bare, messages })
    }

    async fn broker(&self) -> Done<BrokerProcess> {
        let broker = BrokerProcess::start()?;
        self.consumed_by(self.config.amqp.dispatchers).await?;
        Ok(broker)
    }

    async fn consumed_by(&self, consumers: usize) -> Done {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let counts = self.link.counts(&self.queue).await?;
            if counts.is_some_and(|counts| counts.consumers as usize == consumers) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err(format!("{} has not {consumers} consumers", self.queue).into())
    }

    /// Returns the medians of the round trips of a bare consumer and of a broker, which take turns.
    async fn pings(&self) -> Done<(f64, f64)> {
        let _broker = self.broker().await?;
        let answering = tokio::spawn(answer(self.bare.create_channel().await?));
        let channel = self.own.create_channel().await?;
        let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
        let mut answers = channel
            .basic_consume(DIRECT_REPLY.into(), "".into(), options, FieldTable::default())
            .await?;
        let (mut bare, mut broker) = (Vec::new(), Vec::new());
        for number in 0..WARM_UPS + PINGS {
            let of_bare = ping(&channel, &mut answers, ("", BARE), number).await?;
            let of_broker = ping(&channel, &mut answers, (EVENTS, "rec.read"), number).await?;
            if number >= WARM_UPS {
                bare.push(of_bare);
                broker.push(of_broker);
            }
        }
        answering.abort();
        // Its consumer must not take the messages of the relay.
        let _ = answering.await;
        channel.close(200, "bye".into()).await?;
        Ok((millis(quantile(&mut bare, 0.5)), millis(quantile(&mut broker, 0.5))))
    }

    async fn publish(&self, exchange: &str, key: &str) -> Done {
        let channel = self.own.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let round = fastrand::u64(..);
        for first in (0..self.messages).step_by(IN_FLIGHT) {
            let mut confirms = Vec::new();
            for number in first..self.messages.min(first + IN_FLIGHT) {
                let properties = BasicProperties::default()
                    .with_type("count".into())
                    .with_delivery_mode(2)
                    .with_message_id(format!("{round}-{number}").into());
                let options = BasicPublishOptions::default();
                let sent =
                    channel.basic_publish(exchange.into(), key.into(), options, BODY, properties);
                confirms.push(sent.await?);
            }
            for confirm in confirms {
                confirmed(&confirm.await?)?;
            }
        }
        channel.close(200, "bye".into()).await?;
        Ok(())
    }

    /// Returns the rate of a bare relay with as many messages at once as the brokers have.
    async fn relay(&self) -> Done<f64> {
        self.link.purge(BARE).await?;
        self.publish("", BARE).await?;
        let channel = self.bare.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let all = usize::from(self.config.amqp.prefetch) * self.config.amqp.dispatchers;
        let prefetch = u16::try_from(all).unwrap_or(u16::MAX);
        channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
        let began = Instant::now();
        let mut deliveries = consume(&channel, BARE).await?;
        let mut relayed = JoinSet::new();
        for _ in 0..self.messages {
            let delivery = next(&mut deliveries).await?;
            let channel = channel.clone();
            relayed.spawn(async move {
                let sent = channel
                    .basic_publish(
                        "".into(),
                        RELAYED.into(),
                        BasicPublishOptions::default(),
                        &delivery.data,
                        delivery.properties.clone(),
                    )
                    .await?;
                let confirmation = sent.await?;
                delivery.acker.ack(BasicAckOptions::default()).await?;
                Ok::<_, lapin::Error>(confirmation)
            });
            while let Some(done) = relayed.try_join_next() {
                confirmed(&done??)?;
            }
        }
        while let Some(done) = relayed.join_next().await {
            confirmed(&done??)?;
        }
        let rate = per_second(self.messages, began.elapsed());
        channel.close(200, "bye".into()).await?;
        self.link.purge(RELAYED).await?;
        Ok(rate)
    }

    /// Returns the rate of messages through a broker to finished jobs, from the first job that is stored.
    async fn jobs(&self) -> Done<f64> {
        self.consumed_by(0).await?;
        self.link.purge(&self.queue).await?;
        self.publish(EVENTS, "adm").await?;
        let before = [self.count("submitted").await?, self.count("finished").await?];
        let _broker = BrokerProcess::start()?;
        self.until("submitted", before[0] + 1).await?;
        let began = Instant::now();
        self.until("finished", before[1] + self.messages as u64).await?;
        Ok(per_second(self.messages, began.elapsed()))
    }

    /// Waits until a counter of osis has reached a number.
    async fn until(&self, counter: &str, number: u64) -> Done {
        let (mut began, mut seen) = (Instant::now(), 0);
        loop {
            let count = self.count(counter).await?;
            if count >= number {
                return Ok(());
            }
            if count != seen {
                (began, seen) = (Instant::now(), count);
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("{counter} stays at {count}, below {number}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn count(&self, counter: &str) -> Done<u64> {
        let osis: ScriptType = "osis".parse()?;
        Ok(self.client.stats().counters(&osis).await?.get(counter).copied().unwrap_or_default())
    }
}

fn confirmed(confirmation: &Confirmation) -> Done {
    if matches!(confirmation, Confirmation::Ack(None)) {
        Ok(())
    } else {
        Err("a message was not taken".into())
    }
}

async fn consume(channel: &Channel, queue: &str) -> Done<Consumer> {
    let options = BasicConsumeOptions::default();
    Ok(channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await?)
}

async fn next(deliveries: &mut Consumer) -> Done<Delivery> {
    let next = poll_fn(|context| Pin::new(&mut *deliveries).poll_next(context));
    let next = tokio::time::timeout(PATIENCE, next).await?;
    Ok(next.ok_or("the consumer has ended")??)
}

/// Answers each message of the bare queue, and acknowledges it. Ends with an error of its channel.
async fn answer(channel: Channel) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut deliveries = consume(&channel, BARE).await.map_err(|error| text(&error))?;
    loop {
        let next = poll_fn(|context| Pin::new(&mut deliveries).poll_next(context)).await;
        let delivery = next.ok_or("the consumer has ended")?.map_err(|error| text(&error))?;
        let to = delivery.properties.reply_to().clone().unwrap_or_default();
        let id = delivery.properties.correlation_id().clone().unwrap_or_default();
        let properties = BasicProperties::default().with_correlation_id(id);
        let body = br#"{"ok": true, "result": null}"#;
        let options = BasicPublishOptions::default();
        channel
            .basic_publish("".into(), to, options, body, properties)
            .await
            .map_err(|error| text(&error))?;
        delivery.acker.ack(BasicAckOptions::default()).await.map_err(|error| text(&error))?;
    }
}

async fn ping(
    channel: &Channel,
    answers: &mut Consumer,
    (exchange, key): (&str, &str),
    number: usize,
) -> Done<Duration> {
    let properties = BasicProperties::default()
        .with_type("ping".into())
        .with_reply_to(DIRECT_REPLY.into())
        .with_correlation_id(number.to_string().into());
    let began = Instant::now();
    let options = BasicPublishOptions::default();
    channel.basic_publish(exchange.into(), key.into(), options, BODY, properties).await?;
    next(answers).await?;
    Ok(began.elapsed())
}
