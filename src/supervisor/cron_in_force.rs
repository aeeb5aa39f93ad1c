//! Compares the periodic jobs that are in force with the files on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::duty::SupervisorSettings;
use crate::config::{CronEntry, Crontab, NotifyConfig};
use crate::proto::cron::{CronInForce, CronName};
use crate::proto::notification::NotifyName;

/// Reads the files on disk, and returns what is in force, which files differ from it, which periodic jobs, of Redis too,
/// nobody hears of, and which notifications name periodic jobs that there are not.
pub(super) async fn cron_in_force(
    settings: &Arc<SupervisorSettings>,
    whole: Option<Arc<Crontab>>,
) -> CronInForce {
    let crontab = &settings.crontab;
    let unheard = unheard(whole.as_ref().unwrap_or(crontab), settings);
    // Until the periodic jobs in Redis are read, no name is unknown.
    let unknown = whole.map(|whole| unknown(&whole, &settings.notify)).unwrap_or_default();
    let refused = crontab.problems.iter().map(ToString::to_string).collect();
    let of = Arc::clone(settings);
    let compared = tokio::task::spawn_blocking(move || {
        let crontab = &of.crontab;
        let on_disk = crontab.rules.read(&of.supervisor.cron_dir);
        (crontab.digests(), crontab.changed_files(&on_disk))
    });
    // Without an answer it tells less, once.
    let Ok((digests, changed)) = compared.await else { return CronInForce::default() };
    CronInForce::new(digests, changed, refused, unheard, unknown)
}

/// Returns the periodic jobs that name notifications which the configuration does not have.
fn unheard(crontab: &Crontab, settings: &SupervisorSettings) -> Vec<String> {
    let of_entry = |entry: &CronEntry| {
        let named = entry.notifications();
        let unknown = named.iter().filter(|of| !settings.notify.contains_key(*of));
        let unknown: Vec<&str> = unknown.map(NotifyName::as_str).collect();
        (!unknown.is_empty()).then(|| format!("{}: {}", entry.name, unknown.join(", ")))
    };
    crontab.entries.iter().filter_map(of_entry).collect()
}

/// Returns the notifications whose `crons` name periodic jobs that there are not. While a periodic job is refused because
/// of a mistake, there are none: it may be the one that is named.
fn unknown(crontab: &Crontab, notify: &BTreeMap<NotifyName, NotifyConfig>) -> Vec<String> {
    if !crontab.problems.is_empty() {
        return Vec::new();
    }
    let exists = |name: &CronName| crontab.entries.iter().any(|entry| entry.name == *name);
    let of_notification = |(name, notify): (&NotifyName, &NotifyConfig)| {
        let unknown = notify.crons.iter().filter(|cron| !exists(cron));
        let unknown: Vec<&str> = unknown.map(CronName::as_str).collect();
        (!unknown.is_empty()).then(|| format!("{name}: {}", unknown.join(", ")))
    };
    notify.iter().filter_map(of_notification).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn unknown_periodic_job_is_reported_with_its_notification_unless_a_file_is_invalid() {
        let text = "[notify.ops]\njournal = true\ncrons = [\"nightly\", \"nosuchcron\"]\n\
                    [notify.all]\njournal = true\n";
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        write("a.toml", "[cron.nightly]\nschedule = \"@daily\"\ntype = \"osis\"\nscript = \"1\"\n");
        let found = || {
            let mut config = config.clone();
            config.supervisor.cron_dir = folder.path().to_owned();
            unknown(&config.crontab(), &config.notify)
        };
        assert_eq!(found(), ["ops: nosuchcron"]);
        write("b.toml", "[cron.nosuchcron]\n");
        assert!(found().is_empty(), "{:?}", found());
    }
}
