//! Signed jobs: what a signature signs, and its check. A program that can write to Redis can change a job between its
//! submission and its run; an actor that requires a signature runs only what the owner of a key has signed.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::bounds::InvalidJob;
use super::files::{FileBody, NamedFiles};
use super::record::Job;
use super::signature::{FileDigests, JobSignature, KeyName, PublicKey};
use super::spec::{JobSpec, SETTINGS};
use crate::proto::target::{ActorId, Fallback, Group, Target};
use crate::proto::text::sha256;

/// The first line of the text that is signed.
const HEAD: &str = "hero-signed-job-1\n";
/// Settings that no signature signs: they are in the target, or say only when a job runs, in which order, where it is
/// kept and who is told.
pub(super) const UNSIGNED: [&str; 24] = [
    "id",
    "signature",
    "script_type",
    "group",
    "instance",
    "priority",
    "tags",
    "run_at",
    "unique_key",
    "unique_for",
    "unique_by",
    "on_duplicate",
    "debounce",
    "debounce_max",
    "shard_key",
    "traceparent",
    "retention",
    "notify",
    "expect_within",
    "slow_after",
    "durable",
    "may_fail",
    "reply",
    "reply_format",
];

/// Returns the digests of the files that a submitter gives a job.
pub fn file_digests(inputs: &NamedFiles, stdin: Option<&FileBody>) -> FileDigests {
    let named = inputs.iter().map(|(name, body)| (format!("input:{name}"), body));
    let all = named.chain(stdin.map(|body| ("stdin".to_owned(), body)));
    all.map(|(name, body)| (name, hash_of(body))).collect()
}

fn hash_of(body: &FileBody) -> String {
    match body {
        FileBody::Bytes(bytes) => sha256(bytes),
        FileBody::Artifact(artifact) => artifact.hash.to_string(),
    }
}

/// Returns the text that the owner of a key signs; `None` without a script type. docs/protocol.md describes it.
pub fn signed_text(
    job: &Job,
    key: &KeyName,
    not_after: Timestamp,
    files: &FileDigests,
) -> Option<String> {
    let settings = SETTINGS.iter().filter(|setting| !UNSIGNED.contains(&setting.field));
    let settings = settings.filter_map(|setting| {
        let text = setting.text(&job.spec)?;
        Some((setting.field.to_owned(), text))
    });
    let mut parts: BTreeMap<String, String> = settings.collect();
    parts.extend(files.iter().map(|(name, hash)| (name.clone(), hash.clone())));
    parts.insert("id".to_owned(), job.id.to_string());
    parts.insert("key".to_owned(), key.to_string());
    parts.insert("not_after".to_owned(), not_after.to_string());
    parts.insert("target".to_owned(), widest_target(&job.spec)?.to_string());
    let lines = parts.iter().map(|(name, text)| format!("{name} {}\n{text}\n", text.len()));
    Some(HEAD.to_owned() + &lines.collect::<String>())
}

/// Returns the target of a job after it has fallen back as far as it may.
fn widest_target(spec: &JobSpec) -> Option<Target> {
    let script_type = spec.script_type.clone()?;
    Some(match spec.fallback.unwrap_or_default() {
        Fallback::None => Target::of(script_type, spec.group.clone(), spec.instance, None),
        Fallback::Group => {
            let group = spec.group.clone().or(spec.instance.map(|_| Group::default()));
            Target::of(script_type, group, None, None)
        }
        Fallback::Type => Target::any(script_type),
    })
}

/// The keys of which one must have signed each job of a script type; none for jobs that need no signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredKeys(BTreeMap<KeyName, PublicKey>);

impl RequiredKeys {
    pub fn new(keys: impl IntoIterator<Item = (KeyName, PublicKey)>) -> Self {
        Self(keys.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that one of these keys has signed a job for an actor, with these files, and that its signature holds.
    pub fn check(
        &self,
        job: &Job,
        actor: &ActorId,
        files: &FileDigests,
        now: Timestamp,
    ) -> Result<(), InvalidJob> {
        let refused = |why: String| {
            let keys: Vec<&str> = self.0.keys().map(KeyName::as_str).collect();
            let (of, keys) = (&actor.script_type, keys.join(" or "));
            let how = format!("jobs of {of} must be signed by {keys}: hero submit --sign KEY_FILE");
            InvalidJob::new("signature", format!("{why}; {how}"))
        };
        if self.is_empty() {
            return Ok(());
        }
        let signature =
            job.spec.signature.as_ref().ok_or_else(|| refused("is missing".to_owned()))?;
        let JobSignature { key, not_after, .. } = signature;
        let public = self.0.get(key).ok_or_else(|| refused(format!("is by the key {key}")))?;
        let text = signed_text(job, key, *not_after, files);
        let is_right = text.is_some_and(|text| public.verifies(&text, signature));
        if !is_right {
            let why = format!("does not fit: the key {key} has not signed the job as it is now");
            return Err(refused(why));
        }
        // After the check of the signature: only what it signs is worth a word.
        if now > *not_after {
            return Err(refused(format!("ran out: the key {key} has signed until {not_after}")));
        }
        if !is_for(&job.spec, actor) {
            let target = widest_target(&job.spec).map(|of| of.to_string()).unwrap_or_default();
            return Err(refused(format!("is for {target}, not for the actor {actor}")));
        }
        Ok(())
    }
}

/// Returns true if an actor is one of those that a job may go to.
fn is_for(spec: &JobSpec, actor: &ActorId) -> bool {
    let group = spec.group.clone().or(spec.instance.map(|_| Group::default()));
    let farthest = spec.fallback.unwrap_or_default();
    let has_group = group.is_none_or(|group| group == actor.group);
    let has_instance = spec.instance.is_none_or(|instance| instance == actor.instance);
    spec.script_type.as_ref() == Some(&actor.script_type)
        && (has_group || farthest == Fallback::Type)
        && (has_instance || farthest != Fallback::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job::{Setting, SigningKey};
    use std::collections::BTreeSet;

    /// The first key of RFC 8032, as OpenSSL writes it.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
                       MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
                       -----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    /// The example of docs/protocol.md, which another program made.
    const TEXT: &str = "hero-signed-job-1\nargs 6\n[\"ü\"]\nid 5\nfix-1\ninput:a.csv 64\n\
        52186c933993da4082b3cdc7c40bb4bf735b391ff54a2ef78c037dda6c38a680\nkey 3\nops\n\
        not_after 20\n2030-01-01T00:00:00Z\nscript 15\necho \"$1\" für\n\ntarget 19\n\
        type:bash:group:web\ntimeout 2\n30\n";
    const SIGNED: &str = "ops 2030-01-01T00:00:00Z \
        RyQlOHwPfORT5suVSVG++cePgRsh6ub5m0J9R9I1Ou7h+xJwBEnJipImfoyrlwnH1Iusn+NhFdcf5SYOxwP8Cw==";

    fn example() -> (Job, FileDigests) {
        let mut job = Job::new("fix-1".parse().expect("legal"), "echo \"$1\" für\n");
        job.spec.script_type = "bash".parse().ok();
        job.spec.group = "web".parse().ok();
        job.spec.args = vec!["ü".to_owned()];
        job.spec.timeout = Some(std::time::Duration::from_secs(30));
        job.spec.traceparent =
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok();
        job.spec.signature = SIGNED.parse().ok();
        let name = "a.csv".parse().expect("legal");
        let files = NamedFiles::from([(name, FileBody::Bytes(b"1,2\n".to_vec()))]);
        (job, file_digests(&files, None))
    }

    fn keys() -> RequiredKeys {
        RequiredKeys::new([("ops".parse().expect("legal"), PUBLIC.parse().expect("legal"))])
    }

    fn at(time: &str) -> Timestamp {
        time.parse().expect("a time")
    }

    fn checked(job: &Job, files: &FileDigests) -> Result<(), InvalidJob> {
        let actor = "bash:web:2".parse().expect("legal");
        keys().check(job, &actor, files, at("2030-01-01T00:00:00Z"))
    }

    #[test]
    fn text_and_signature_are_those_of_the_other_program() {
        let (job, files) = example();
        let (name, not_after) = ("ops".parse().expect("legal"), at("2030-01-01T00:00:00Z"));
        assert_eq!(signed_text(&job, &name, not_after, &files).as_deref(), Some(TEXT));
        let key = SigningKey::of_pem(name, KEY).expect("a key");
        assert_eq!(key.public().expect("a key").to_string(), PUBLIC);
        let signature = key.sign(&job, not_after, &files).expect("signed");
        assert_eq!(signature.to_string(), SIGNED);
        assert_eq!(checked(&job, &files), Ok(()));
    }

    #[test]
    fn every_signed_part_counts_and_the_others_do_not() {
        let (job, files) = example();
        let said = |change: &dyn Fn(&mut Job)| {
            let mut job = job.clone();
            change(&mut job);
            checked(&job, &files).err().map(|error| error.reason).unwrap_or_default()
        };
        assert!(said(&|job| job.id = "fix-2".parse().expect("legal")).contains("does not fit"));
        let digest = "0".repeat(64);
        for setting in SETTINGS.iter().filter(|of| !UNSIGNED.contains(&of.field)) {
            let texts = [
                "1",
                "true",
                "a",
                "[\"a\"]",
                "{\"a\":\"b\"}",
                "10s",
                "fail",
                "none",
                "512MiB",
                digest.as_str(),
            ];
            let other = |text: &&&str| {
                let mut other = job.clone();
                setting.set(&mut other.spec, text).is_ok()
                    && setting.text(&other.spec) != setting.text(&job.spec)
            };
            let text =
                texts.iter().find(other).or_else(|| ["false", "group", "a = 1"].iter().find(other));
            let text = text.unwrap_or_else(|| panic!("no value for {}", setting.field));
            let change = |job: &mut Job| setting.set(&mut job.spec, text).expect("legal");
            assert!(said(&change).contains("does not fit"), "{} = {text}", setting.field);
        }
        assert_eq!(said(&|job| job.spec.run_at = Some(at("2031-01-01T00:00:00Z"))), "");
        assert!(checked(&job, &FileDigests::new()).is_err());
        assert!(said(&|job| job.spec.signature = None).starts_with("is missing"));
        let late = keys().check(
            &job,
            &"bash:web:1".parse().expect("legal"),
            &files,
            at("2030-01-01T00:00:01Z"),
        );
        assert!(late.expect_err("late").reason.starts_with("ran out: the key ops"));
        let elsewhere = keys().check(
            &job,
            &"bash:db:1".parse().expect("legal"),
            &files,
            at("2029-01-01T00:00:00Z"),
        );
        assert!(
            elsewhere.expect_err("another group").reason.starts_with("is for type:bash:group:web")
        );
    }

    #[test]
    fn target_is_the_widest_that_the_fallback_of_the_job_allows() {
        let target = |group: &str, instance: &str, fallback| {
            let mut spec =
                JobSpec { script_type: "bash".parse().ok(), fallback, ..JobSpec::new("1") };
            spec.group = group.parse().ok();
            spec.instance = instance.parse().ok();
            widest_target(&spec).expect("a target").to_string()
        };
        for (group, instance, fallback, wide) in [
            ("", "", None, "type:bash"),
            ("web", "2", None, "type:bash:group:web:inst:2"),
            ("web", "2", Some(Fallback::Group), "type:bash:group:web"),
            ("", "2", Some(Fallback::Group), "type:bash:group:default"),
            ("default", "", Some(Fallback::Group), "type:bash:group:default"),
            ("web", "2", Some(Fallback::Type), "type:bash"),
        ] {
            assert_eq!(target(group, instance, fallback), wide);
        }
    }

    #[test]
    fn only_a_signature_in_its_one_spelling_is_read() {
        assert_eq!(SIGNED.parse::<JobSignature>().expect("legal").to_string(), SIGNED);
        let giant = "A".repeat(1 << 20);
        for wrong in [
            "",
            "ops",
            &SIGNED.replace(' ', "  "),
            &SIGNED.replace("00Z", "00.000Z"),
            &SIGNED.replace("ops", "o\u{1b}ps"),
            &SIGNED.replace("ops", "../ops"),
            &SIGNED.replace("==", ""),
            &format!("{SIGNED} more"),
            &giant,
        ] {
            let error = wrong.parse::<JobSignature>().expect_err("illegal").to_string();
            assert!(error.len() < 600, "{error}");
        }
        for wrong in ["", "AAAA", &giant] {
            assert!(wrong.parse::<PublicKey>().is_err());
        }
    }

    #[test]
    fn new_key_signs_what_its_public_half_verifies() {
        let pem = SigningKey::new_pem().expect("a key");
        let key = SigningKey::of_pem("ops".parse().expect("legal"), &pem).expect("a key");
        let (mut job, files) = example();
        job.spec.signature = key.sign(&job, at("2030-01-01T00:00:00Z"), &files).ok();
        let keys = RequiredKeys::new([(key.name().clone(), key.public().expect("a key"))]);
        let actor = "bash:web:1".parse().expect("legal");
        assert_eq!(keys.check(&job, &actor, &files, at("2029-01-01T00:00:00Z")), Ok(()));
        assert!(checked(&job, &files).is_err(), "another key");
    }

    #[test]
    fn every_unsigned_name_is_a_setting_that_the_page_of_the_protocol_lists() {
        let page = include_str!("../../../docs/protocol.md");
        let list = page.split_once("who is told: ").expect("the list of what no signature signs").1;
        let list = list.split_once(".\n").expect("its end").0;
        let listed: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
        assert_eq!(listed, BTreeSet::from(UNSIGNED));
        assert!(UNSIGNED.iter().all(|name| Setting::of_field(name).is_some()));
    }
}
