//! The scale benchmark: large loads on a private Redis, and the longest call of each. A call that
//! takes long stops Redis for everyone, so the program fails if one exceeds its bound. The slow log
//! measures time that passed, so other work on the machine counts as well: root gives Redis a higher
//! priority, and the program allows for as much as it has still seen of that.
//!
//! ```sh
//! make scale
//! target/debug/hero --config xtask/scale.toml dev -- target/debug/xtask scale --divide-by 100
//! ```

mod loads;
mod many;
mod watch;

use std::time::{Duration, Instant};

use clap::Args;
use hero::client::Client;
use hero::config::Config;
use hero::store::Store;

use crate::bench::{Done, bare_redis, config_of, millis};
use crate::performer::Performer;
use watch::{Observed, Watch};

/// Put large loads on a private Redis; run it as `hero dev -- xtask scale`
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// Divide the size of each load by this
    #[arg(long, default_value_t = 1)]
    divide_by: usize,
    /// The bound of a call in ms
    #[arg(long, default_value_t = 25.0)]
    longest: f64,
    /// The loads to run; all without it
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

impl Scale {
    pub(crate) fn run(&self) -> Done {
        let config = config_of("scale")?;
        let store = Store::open(&config.redis)?.of_jobs(&config.job);
        let watch = Watch::open(bare_redis(&config)?, store.keys())?;
        let client = Client::open(&config)?;
        let mut stage = Stage { client, store, config, watch, over: Vec::new(), asked: self };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        print_head();
        runtime.block_on(loads::all(&mut stage, self.divide_by.max(1)))?;
        match stage.over.as_slice() {
            [] => Ok(()),
            over => Err(format!("longer than {} ms: {}", self.longest, over.join(", ")).into()),
        }
    }
}

struct Stage<'a> {
    client: Client,
    store: Store,
    config: Config,
    watch: Watch,
    over: Vec<String>,
    asked: &'a Scale,
}

impl Stage<'_> {
    async fn performer(&self, script_type: &str, instance: usize) -> Done<Performer> {
        Performer::appear(&self.config, &self.store, script_type, instance).await
    }

    fn is_asked(&self, load: &str) -> bool {
        self.asked.only.is_empty() || self.asked.only.iter().any(|asked| asked == load)
    }

    /// Runs one load and prints what it did to Redis.
    async fn load(
        &mut self,
        name: &str,
        size: usize,
        run: impl AsyncFnOnce(&Self) -> Done,
    ) -> Done {
        self.watch.begin()?;
        let began = Instant::now();
        let done = run(self).await;
        let took = began.elapsed();
        let mut observed = self.watch.end()?;
        done?;
        let disturbed = observed.disturbed();
        let bound = Duration::from_secs_f64(self.asked.longest / 1000.0) + disturbed;
        for (script, longest) in &observed.longest {
            if *longest > bound {
                self.over.push(format!("{script} at {name} ({:.1} ms)", millis(*longest)));
            }
        }
        print(name, size, took, &mut observed);
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "the result of a command line program")]
fn print_head() {
    println!(
        "{:<34} {:>9} {:>7} {:>8} {:>9}  {:>6} {:>6} {:>6}  longest calls, ms",
        "load", "size", "s", "scripts", "commands", "p50", "p99", "max"
    );
}

#[expect(clippy::print_stdout, reason = "the result of a command line program")]
fn print(name: &str, size: usize, took: Duration, observed: &mut Observed) {
    const SHOWN: usize = 4;
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|q| millis(observed.ping(q)));
    let mut longest: Vec<_> = observed.longest.iter().collect();
    longest.sort_by_key(|(_, took)| std::cmp::Reverse(**took));
    let longest = longest.into_iter().take(SHOWN);
    let events = observed.events.iter().filter(|(name, _)| !name.ends_with("command"));
    let shown: Vec<String> =
        longest.chain(events).map(|(name, took)| format!("{name} {:.1}", millis(*took))).collect();
    println!(
        "{name:<34} {size:>9} {:>7.1} {:>8} {:>9}  {p50:>6.2} {p99:>6.2} {max:>6.1}  {}",
        took.as_secs_f64(),
        observed.scripts,
        observed.commands,
        shown.join(", ")
    );
}
