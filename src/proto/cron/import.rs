//! Turns the lines of a crontab into periodic jobs, and says what differs. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use jiff::tz::TimeZone;

use super::{CronName, Schedule};
use crate::proto::target::is_identifier;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrontabKind {
    /// The file of a machine, whose lines name a user: /etc/crontab, and files of /etc/cron.d.
    System,
    User,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedJob {
    pub name: CronName,
    pub line: usize,
    pub text: String,
    pub schedule: String,
    /// The zone of the file, if it names one.
    pub time_zone: Option<String>,
    /// The longest delay that the file asks for, in minutes.
    pub delay_minutes: Option<u32>,
    /// Its script, for bash.
    pub script: String,
    pub env: BTreeMap<String, String>,
    /// The notification that it names, in place of mail.
    pub notify: Option<String>,
}

/// A difference, or a line that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportNote {
    pub line: usize,
    pub text: String,
    pub is_left_out: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedCrontab {
    pub jobs: Vec<ImportedJob>,
    /// The differences, in the order of the lines.
    pub notes: Vec<ImportNote>,
}

/// Programs that start another, by which no periodic job is called.
const STARTERS: [&str; 13] = [
    "command", "env", "nice", "ionice", "chronic", "flock", "timeout", "sudo", "exec", "if",
    "then", "sh", "bash",
];
/// Programs that only prepare or decide about the next one.
const BEFORE: [&str; 9] = ["cd", "test", "[", "[[", "export", ".", "source", "umask", "sleep"];
/// The longest base of a name, which leaves room for a number.
const NAME_LEN: usize = 28;
/// The most periodic jobs of one base.
const NUMBERED_MAX: u32 = 999;

/// Reads a crontab. `taken` are names that others have; it adds its own.
pub fn imported(text: &str, kind: CrontabKind, taken: &mut BTreeSet<CronName>) -> ImportedCrontab {
    let mut reader =
        CrontabReader { kind, taken, env: BTreeMap::new(), found: ImportedCrontab::default() };
    for (at, line) in text.lines().enumerate() {
        reader.line(at + 1, line.trim());
    }
    reader.found
}

/// The environment lines so far, and the periodic jobs that were found.
struct CrontabReader<'t> {
    kind: CrontabKind,
    taken: &'t mut BTreeSet<CronName>,
    env: BTreeMap<String, String>,
    found: ImportedCrontab,
}

impl CrontabReader<'_> {
    fn line(&mut self, number: usize, line: &str) {
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        if let Some((name, value)) = environment(line) {
            self.note_environment(number, name, &value);
            self.env.insert(name.to_owned(), value);
            return;
        }
        let fields = if line.starts_with('@') { 1 } else { 5 };
        let Some((schedule, rest)) = split_fields(line, fields) else {
            return self.leave_out(number, "it is no line of a crontab: five fields and a command");
        };
        let schedule = schedule.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        if schedule.eq_ignore_ascii_case("@reboot") {
            let why = "@reboot names no time; a systemd unit that runs hero submit starts a job with its machine";
            return self.leave_out(number, why);
        }
        let (user, command) = match self.kind {
            CrontabKind::System => match split_fields(rest, 1) {
                Some((user, command)) => (Some(user), command),
                None => return self.leave_out(number, "it has a user and no command"),
            },
            CrontabKind::User => (None, rest),
        };
        if command.is_empty() {
            return self.leave_out(number, "it has no command");
        }
        if let Err(why) = Schedule::new(&schedule, TimeZone::UTC) {
            return self.leave_out(number, &why);
        }
        self.note_schedule(number, &schedule);
        if let Some(user) = user {
            let text = format!("cron runs it as {user}; here it runs as the user of its actor");
            self.note(number, text);
        }
        let script = self.script(number, command);
        let run = percent_parts(command).swap_remove(0);
        let Some(name) = self.name(&run, number) else {
            return self.leave_out(number, "too many periodic jobs have the name of its command");
        };
        self.found.jobs.push(ImportedJob {
            name,
            line: number,
            text: line.to_owned(),
            schedule,
            time_zone: self.env.get("CRON_TZ").cloned(),
            delay_minutes: self.env.get("RANDOM_DELAY").and_then(|text| text.parse().ok()),
            script,
            env: self.environment_of_jobs(),
            notify: self.env.get("MAILTO").filter(|to| !to.is_empty()).map(|to| notification(to)),
        });
    }

    /// The variables that the jobs get; those by which cron itself goes are none.
    fn environment_of_jobs(&self) -> BTreeMap<String, String> {
        let own = [
            "MAILTO",
            "MAILFROM",
            "SHELL",
            "CRON_TZ",
            "RANDOM_DELAY",
            "LOGNAME",
            "USER",
            "CONTENT_TYPE",
        ];
        let given = self.env.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        given.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn note_environment(&mut self, number: usize, name: &str, value: &str) {
        let text = match name {
            "MAILTO" if value.is_empty() => return,
            "MAILTO" => {
                let name = notification(value);
                format!(
                    "cron mails the output to {value}; here it is kept with the job (hero job logs), and the jobs below \
                     name the notification {name}, which tells of failures: add [notify.{name}] with mail = \
                     [\"{value}\"] and named = true to hero.toml"
                )
            }
            "MAILFROM" | "CONTENT_TYPE" => format!("{name} is left out: no mail is sent"),
            "SHELL" if matches!(value, "/bin/sh" | "/bin/bash" | "/usr/bin/bash" | "/bin/dash") => {
                return;
            }
            "SHELL" => format!("the lines below run in {value} under cron; here they run in bash"),
            "LOGNAME" | "USER" => {
                format!("{name} is left out: jobs run as the user of their actor")
            }
            "RANDOM_DELAY" if value.parse::<u32>().is_ok() => {
                format!(
                    "a delay of up to {value} minutes becomes spread: another one at each name, the same at each firing"
                )
            }
            "CRON_TZ" => format!("the lines below fire in the time zone {value}"),
            _ => format!("the environment variable {name} becomes one of the jobs below"),
        };
        self.note(number, text);
    }

    fn note_schedule(&mut self, number: usize, schedule: &str) {
        let fields: Vec<&str> = schedule.split(' ').collect();
        let (Some(day), Some(weekday)) = (fields.get(2), fields.get(4)) else { return };
        if *day == "*" || *weekday == "*" {
            return;
        }
        if day.starts_with('*') || weekday.starts_with('*') {
            let text = "it names days of the month and of the week, one of them by a `*` with a step: cron fires on days \
                        that both name, Hero on days that either names; see hero cron show";
            return self.note(number, text.to_owned());
        }
        let text = "it names days of the month and of the week: it fires on days that either names, as under cron";
        self.note(number, text.to_owned());
    }

    /// Returns the script of a command: what follows its first `%` is the standard input.
    fn script(&mut self, number: usize, command: &str) -> String {
        let mut parts = percent_parts(command).into_iter();
        let first = parts.next().unwrap_or_default();
        let input: Vec<String> = parts.collect();
        if input.is_empty() {
            return first;
        }
        self.note(
            number,
            "what follows the first % becomes the standard input of its command".to_owned(),
        );
        let mut end = "END".to_owned();
        while input.contains(&end) {
            end.push('_');
        }
        format!("{{ {first}\n}} <<'{end}'\n{}\n{end}\n", input.join("\n"))
    }

    /// Returns a free name after the program of a command; none if too many have it.
    fn name(&mut self, command: &str, number: usize) -> Option<CronName> {
        let mut bases = command.split(['&', '|', ';', '\n']).filter_map(program);
        let base: String = bases.next().unwrap_or_default().to_ascii_lowercase();
        let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let base: String = base.chars().map(legal).take(NAME_LEN).collect();
        let base = base.trim_matches('-');
        let base = if base.is_empty() { format!("line-{number}") } else { base.to_owned() };
        let numbered = |count: u32| {
            let name = if count == 1 { base.clone() } else { format!("{base}-{count}") };
            name.parse::<CronName>().ok().filter(|name| !self.taken.contains(name))
        };
        let name = (1..=NUMBERED_MAX).find_map(numbered)?;
        self.taken.insert(name.clone());
        Some(name)
    }

    fn note(&mut self, line: usize, text: String) {
        self.found.notes.push(ImportNote { line, text, is_left_out: false });
    }

    fn leave_out(&mut self, line: usize, why: &str) {
        let text = format!("left out: {why}");
        self.found.notes.push(ImportNote { line, text, is_left_out: true });
    }
}

impl ImportedJob {
    /// Returns its table of a file for the folder of periodic jobs. `zone` is the time zone of the machine.
    pub fn table(&self, file: &str, zone: &str) -> String {
        let mut text = String::new();
        let shown: String = self.text.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        let _ = writeln!(text, "# {file}:{}: {shown}\n[cron.{}]", self.line, self.name);
        let _ = writeln!(text, "schedule = {}", quoted(&self.schedule));
        let zone = self.time_zone.as_deref().unwrap_or(zone);
        let _ = writeln!(text, "time_zone = {}\ntype = \"bash\"", quoted(zone));
        if let Some(minutes) = self.delay_minutes.filter(|minutes| *minutes > 0) {
            let _ = writeln!(text, "spread = \"{minutes}m\"");
        }
        let _ = writeln!(text, "script = {}", quoted(&self.script));
        if let Some(name) = &self.notify {
            let _ = writeln!(text, "notify = [{}]", quoted(name));
        }
        if !self.env.is_empty() {
            let env = self.env.iter().map(|(name, value)| format!("{name} = {}", quoted(value)));
            let _ = writeln!(text, "env = {{ {} }}", env.collect::<Vec<_>>().join(", "));
        }
        text
    }
}

/// Returns the name of the program that a simple command runs; none for one that only prepares another.
fn program(simple: &str) -> Option<&str> {
    let words = simple.split(|c: char| c.is_ascii_whitespace() || "(){}".contains(c));
    let words = words.filter(|word| {
        let is_option = word.starts_with(['-', '+', '!']);
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        !is_option && !is_number && !word.contains(['=', '%', '>', '<', '"', '\'', '$'])
    });
    let bases = words.filter_map(|word| word.rsplit('/').next().filter(|base| !base.is_empty()));
    let mut bases = bases.skip_while(|base| STARTERS.contains(base));
    bases.next().filter(|base| !BEFORE.contains(base))
}

/// Returns the name of the notification that takes the place of mail to an address.
fn notification(address: &str) -> String {
    let user = address.split(['@', ',']).next().unwrap_or_default().to_ascii_lowercase();
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let user: String = user.trim().chars().map(legal).take(NAME_LEN - "mail-".len()).collect();
    format!("mail-{user}")
}

fn quoted(text: &str) -> String {
    let json = serde_json::Value::String(text.to_owned()).to_string();
    json.replace('\u{7f}', "\\u007f")
}

/// Returns a line `NAME = value` in parts, without the quotes around them.
fn environment(line: &str) -> Option<(&str, String)> {
    let (name, value) = line.split_once('=')?;
    let unquoted = |text: &str| -> Option<String> {
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.to_owned())
    };
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = is_identifier(name.as_bytes(), usize::MAX);
    let value = value.trim();
    is_name.then(|| (name, unquoted(value).unwrap_or_else(|| value.to_owned())))
}

fn split_fields(line: &str, number: usize) -> Option<(&str, &str)> {
    let mut rest = line;
    for _ in 0..number {
        rest = rest.trim_start();
        let end = rest.find(|c: char| c.is_ascii_whitespace())?;
        rest = &rest[end..];
    }
    let head = line[..line.len() - rest.len()].trim();
    Some((head, rest.trim()))
}

/// Splits a command at each `%` without a backslash; `\%` is a percent sign.
fn percent_parts(command: &str) -> Vec<String> {
    let (mut parts, mut escaped) = (vec![String::new()], false);
    for c in command.chars() {
        match (c, parts.last_mut()) {
            ('%', Some(last)) if escaped => {
                last.pop();
                last.push('%');
            }
            ('%', _) => parts.push(String::new()),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, kind: CrontabKind) -> ImportedCrontab {
        imported(text, kind, &mut BTreeSet::new())
    }

    #[test]
    fn lines_become_periodic_jobs_and_what_differs_is_reported() {
        let text = "SHELL=/bin/sh\nMAILTO = \"ops@example.org\"\nPATH=/usr/bin:/bin\n\n# a comment\n\
                    17 *\t* * *  root  cd / && run-parts --report /etc/cron.hourly\n\
                    25 6 1-7 * MON root test -x /usr/sbin/anacron || run-parts /etc/cron.daily\n\
                    @daily backup /usr/local/bin/Backup_DB.sh > /dev/null 2>&1\n\
                    0 9 * * * ann mail -s \"100\\% up\" ann%Hello,%all is well\n\
                    @reboot root /usr/bin/start\n\
                    61 * * * * root false\n";
        let found = read(text, CrontabKind::System);
        let names: Vec<&str> = found.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["run-parts", "run-parts-2", "backup-db-sh", "mail"]);
        assert_eq!(found.jobs[0].schedule, "17 * * * *");
        assert_eq!(found.jobs[0].script, "cd / && run-parts --report /etc/cron.hourly");
        assert_eq!(found.jobs[0].env, [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
        assert_eq!(found.jobs[0].notify.as_deref(), Some("mail-ops"));
        assert!(found.jobs[0].table("f", "UTC").contains("\nnotify = [\"mail-ops\"]\n"));
        let mail = "{ mail -s \"100% up\" ann\n} <<'END'\nHello,\nall is well\nEND\n";
        assert_eq!(found.jobs[3].script, mail);
        let notes: Vec<(usize, &str)> =
            found.notes.iter().map(|note| (note.line, note.text.as_str())).collect();
        for (line, start) in [
            (2, "cron mails the output to ops@example.org"),
            (3, "the environment variable PATH"),
            (6, "cron runs it as root"),
            (7, "it names days of the month and of the week: it fires on days that either"),
            (9, "what follows the first %"),
            (10, "left out: @reboot"),
            (11, "left out: not a cron line: `61` is no minute"),
        ] {
            let is_told = notes.iter().any(|(of, text)| *of == line && text.starts_with(start));
            assert!(is_told, "{line}: {start}: {notes:?}");
        }
        let left_out = found.notes.iter().filter(|note| note.is_left_out).count();
        assert_eq!(left_out, 2);
    }

    #[test]
    fn crontab_of_a_user_has_no_column_of_users() {
        let found = read(
            "CRON_TZ=Asia/Tokyo\nRANDOM_DELAY=15\n*/5 8-18 * jan,feb mon-fri root -x\n",
            CrontabKind::User,
        );
        let job = &found.jobs[0];
        assert_eq!(
            (job.script.as_str(), job.schedule.as_str()),
            ("root -x", "*/5 8-18 * jan,feb mon-fri")
        );
        let table = job.table("ann", "UTC");
        assert_eq!(
            table,
            "# ann:3: */5 8-18 * jan,feb mon-fri root -x\n[cron.root]\nschedule = \"*/5 8-18 * jan,feb mon-fri\"\n\
             time_zone = \"Asia/Tokyo\"\ntype = \"bash\"\nspread = \"15m\"\nscript = \"root -x\"\n"
        );
    }

    #[test]
    fn days_of_month_and_week_are_joined_and_a_step_of_days_too() {
        let next = |line: &str| {
            let schedule = Schedule::new(line, TimeZone::UTC).expect(line);
            let from = "2026-01-01T12:00:00Z".parse().expect("a time");
            schedule.next_after(from).expect("it fires").to_string()
        };
        assert_eq!(next("0 0 13 * MON"), "2026-01-05T00:00:00Z");
        assert_eq!(next("0 0 */10 * MON"), "2026-01-05T00:00:00Z");
    }

    proptest! {
        #[test]
        fn any_crontab_gives_tables_that_toml_reads(text in "([0-9*@a-z/,% =\\\\\"'-]{0,40}\n){0,6}", system: bool) {
            let kind = if system { CrontabKind::System } else { CrontabKind::User };
            let found = read(&text, kind);
            let tables: Vec<String> = found.jobs.iter().map(|job| job.table("f", "UTC")).collect();
            let parsed: toml::Table = tables.join("\n").parse().expect("TOML");
            let number = parsed.get("cron").and_then(toml::Value::as_table).map_or(0, toml::Table::len);
            prop_assert_eq!(number, found.jobs.len(), "each has a name of its own");
        }
    }
}
