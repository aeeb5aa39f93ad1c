//! The unique key that is made of a job's content.

use serde_json::json;

use super::bounds::InvalidJob;
use super::id::UniqueKey;
use super::spec::JobSpec;
use super::uniqueness::{OnDuplicate, UniqueBy};
use crate::proto::text::sha256;

impl JobSpec {
    /// Checks that a job which asks for uniqueness says by what.
    pub fn check_uniqueness(&self) -> Result<(), InvalidJob> {
        let by_content = matches!(self.unique_by, Some(UniqueBy::Script | UniqueBy::Params));
        if by_content && self.unique_key.is_some() {
            return Err(InvalidJob::new("unique_key", "cannot be set beside unique_by"));
        }
        let lonely = [
            ("unique_for", self.unique_for.is_some()),
            ("on_duplicate", self.on_duplicate.is_some()),
            ("debounce", self.debounce.is_some()),
            ("unique_by", self.unique_by == Some(UniqueBy::Key)),
        ];
        self.check_debounce()?;
        let lonely = lonely.into_iter().find(|(_, is_set)| *is_set);
        match lonely {
            Some((field, _)) if !by_content && self.unique_key.is_none() => {
                let reason = "needs a unique key (--unique-key, `unique_key`), or uniqueness by the content \
                              (--unique-by script, `unique_by`)";
                Err(InvalidJob::new(field, reason))
            }
            _ => Ok(()),
        }
    }

    fn check_debounce(&self) -> Result<(), InvalidJob> {
        let wrong = |field, why: &str| Err(InvalidJob::new(field, why));
        match (self.debounce, self.debounce_max) {
            (None, Some(_)) => wrong("debounce_max", "needs debounce"),
            (Some(wait), Some(most)) if most < wait => {
                wrong("debounce_max", "is shorter than debounce")
            }
            (Some(_), _) if self.run_at.is_some() => {
                wrong("debounce", "cannot be set beside run_at, or a delay")
            }
            (Some(_), _) if !matches!(self.on_duplicate, None | Some(OnDuplicate::Replace)) => {
                wrong("debounce", "cannot be set beside this on_duplicate: it replaces")
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the job takes the place of a waiting one with its unique key.
    pub fn replaces(&self) -> bool {
        self.on_duplicate == Some(OnDuplicate::Replace) || self.debounce.is_some()
    }

    /// Returns the unique key that `unique_by` makes of the job; `None` if it makes none.
    pub fn key_of_content(&self) -> Option<UniqueKey> {
        let by = self.unique_by?;
        let target = (self.script_type.as_ref(), self.group.as_ref());
        let mut content = match by {
            UniqueBy::Key => return None,
            UniqueBy::Script => {
                json!([target, self.script, self.args, self.params, self.env_vars])
            }
            UniqueBy::Params => json!([target, self.name, self.params]),
        };
        // Another order of the members makes no other job.
        content.sort_all_objects();
        format!("{by}:{}", sha256(content.to_string())).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(by: UniqueBy, change: impl FnOnce(&mut JobSpec)) -> String {
        let mut spec = JobSpec { unique_by: Some(by), ..JobSpec::new("1") };
        change(&mut spec);
        spec.key_of_content().expect("a key").to_string()
    }

    #[test]
    fn jobs_of_the_same_content_have_the_same_key() {
        let plain = of(UniqueBy::Script, |_| {});
        assert!(plain.starts_with("script:") && plain.len() == 71, "{plain}");
        assert_eq!(plain, of(UniqueBy::Script, |spec| spec.name = "a".parse().ok()));
        let others: [fn(&mut JobSpec); 5] = [
            |spec| spec.script = "2".to_owned(),
            |spec| spec.args.push(String::new()),
            |spec| drop(spec.params.insert("a".to_owned(), 1.into())),
            |spec| drop(spec.env_vars.insert("A".to_owned(), "1".to_owned())),
            |spec| spec.group = "io".parse().ok(),
        ];
        for other in others {
            assert_ne!(plain, of(UniqueBy::Script, other));
        }
        let params = of(UniqueBy::Params, |_| {});
        assert_eq!(params, of(UniqueBy::Params, |spec| spec.script = "2".to_owned()));
        assert_ne!(params, of(UniqueBy::Params, |spec| spec.name = "a".parse().ok()));
        assert_ne!(
            params,
            of(UniqueBy::Params, |spec| drop(spec.params.insert("a".to_owned(), 1.into())))
        );
        assert_ne!(params[7..], plain[7..]);
        let ordered = |names: [&str; 2]| {
            of(UniqueBy::Params, |spec| {
                spec.params.extend(names.map(|name| (name.to_owned(), json!(null))));
            })
        };
        assert_eq!(ordered(["a", "b"]), ordered(["b", "a"]));
    }

    #[test]
    fn uniqueness_needs_a_key_or_a_content() {
        let check = |change: fn(&mut JobSpec)| {
            let mut spec = JobSpec::new("1");
            change(&mut spec);
            spec.check_uniqueness().err().map(|error| error.field)
        };
        assert_eq!(check(|_| {}), None);
        assert_eq!(
            check(|spec| spec.on_duplicate = Some(OnDuplicate::Reject)).as_deref(),
            Some("on_duplicate")
        );
        assert_eq!(
            check(|spec| spec.unique_by = Some(UniqueBy::Key)).as_deref(),
            Some("unique_by")
        );
        assert_eq!(
            check(|spec| {
                spec.unique_by = Some(UniqueBy::Script);
                spec.unique_key = "k".parse().ok();
            })
            .as_deref(),
            Some("unique_key")
        );
        assert_eq!(
            check(|spec| {
                spec.unique_by = Some(UniqueBy::Params);
                spec.on_duplicate = Some(OnDuplicate::Replace);
            }),
            None
        );
    }
}
