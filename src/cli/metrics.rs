//! `hero metrics`: the state of the namespace as metrics for Prometheus and its like.

use clap::Args;

use super::{Global, output};
use crate::error::{Error, Exit};
use crate::metrics::{Format, Metrics};
use crate::view::HealthRules;

/// Print metrics as Prometheus reads them
#[derive(Debug, Args)]
#[command(after_help = "Example, for the textfile collector of node_exporter:\n  \
                  hero metrics > /var/lib/prometheus/node-exporter/hero.prom.new &&\n    \
                  mv /var/lib/prometheus/node-exporter/hero.prom.new \\\n      \
                  /var/lib/prometheus/node-exporter/hero.prom\n\n\
                  [metrics] of hero.toml(5) bounds the number of series. docs/monitoring.md lists \
                  the metrics, and what to alert on.")]
pub(super) struct MetricsCommand {
    #[arg(long, help = "Print the format OpenMetrics instead of the classic one")]
    openmetrics: bool,
}

impl MetricsCommand {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        if global.json {
            let message =
                "hero metrics prints no JSON; hero status --json and hero stats --json do";
            return Err(Error::new(Exit::Usage, message));
        }
        let config = global.config()?;
        let client = global.client()?;
        let address = config.redis.redacted_url();
        let metrics = Metrics::read(&client, address, &HealthRules::from(config)).await?;
        let format = if self.openmetrics { Format::OpenMetrics } else { Format::Classic };
        output::text(&metrics.text(format, &config.metrics))
    }
}
