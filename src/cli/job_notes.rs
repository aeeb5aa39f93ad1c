//! Notes about settings of a new job that this configuration does not know. The configuration of the actors
//! decides, which may be another one: the job is submitted nevertheless.

use super::output;
use crate::config::{Config, Per};
use crate::proto::job::JobSpec;

/// Prints the notes about a job that was submitted.
pub(super) fn print(job: &JobSpec, config: &Config) {
    for note in notes(job, config) {
        output::note(&format!("hero: {note}"));
    }
}

fn notes(job: &JobSpec, config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(key) = &job.limit_key {
        let is_used = config
            .limits
            .values()
            .any(|limit| limit.per == Some(Per::Key) || limit.key.as_ref() == Some(key));
        if !is_used {
            notes.push(format!(
                "no limit of this configuration uses the limit key {key}: `[limit.NAME]` with \
                 key = \"{key}\" or per = \"key\", on the machines of the actors"
            ));
        }
    }
    for secret in &job.secrets {
        let name = secret.name();
        if !config.secrets.allow.contains_key(name) {
            notes.push(format!(
                "this configuration allows no job the secret {name}: `[secrets.allow.{name}]`, on the \
                 machines of the actors"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_key_that_no_limit_uses_and_secret_that_nobody_may_use_are_noted() {
        let mut job = JobSpec { limit_key: "a".parse().ok(), ..JobSpec::default() };
        job.secrets = vec!["db".parse().expect("legal")];
        let of = |text: &str| {
            notes(&job, &Config::from_toml("hero.toml".as_ref(), text).expect("legal")).len()
        };
        assert_eq!(of(""), 2);
        assert_eq!(
            of("[limit.x]\nper = \"key\"\nrunning = 1\n[secrets.allow.db]\ntypes = [\"bash\"]\n"),
            0
        );
        assert_eq!(of("[limit.x]\nkey = \"a\"\nrunning = 1\n"), 1);
        assert_eq!(
            of("[limit.x]\nkey = \"b\"\nrunning = 1\n[secrets.allow.db]\ntypes = [\"bash\"]\n"),
            1
        );
    }
}
