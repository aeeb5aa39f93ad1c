//! A line of cron: which local times it names. It knows no time zone.

use croner::Cron;
use croner::parser::{CronParser, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::proto::text::shown;

/// The fields of a line, with their legal values. The first may be absent.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L for the last, 15W for the working day next to the 15th"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of the week", "0 to 7 or SUN to SAT, 5L for the last Friday, 5#2 for the second"),
];
/// The fields whose `*` means a distance between firings.
const CLOCK: [&str; 2] = ["minute", "hour"];
const WORDS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronLine {
    cron: Cron,
    repeats: bool,
}

impl CronLine {
    /// Parses a line of five fields, of six with seconds first, or a word such as `@daily`.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let line = if line.starts_with('@') { meaning(line)? } else { line };
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let legal = match fields.len() {
            0 => return Err("it is empty".to_owned()),
            5 | 6 => &FIELDS[FIELDS.len() - fields.len()..],
            1 => return Err("it has 1 field".to_owned()),
            count => return Err(format!("it has {count} fields")),
        };
        if let Some(mistake) = fields.iter().zip(legal).find_map(too_large_step) {
            return Err(mistake);
        }
        let cron = parser().parse(&fields.join(" ")).map_err(|_| mistake(&fields, legal))?;
        let clock = legal.iter().zip(&fields).filter(|((name, _), _)| CLOCK.contains(name));
        let repeats = clock.map(|(_, field)| *field).any(|field| field.contains(['*', '?']));
        Ok(Self { cron, repeats })
    }

    /// Returns true if minute or hour have a `*`: the line means a distance between firings, not times of
    /// the day. This is the rule of Debian's cron.
    pub(super) fn repeats(&self) -> bool {
        self.repeats
    }

    /// Returns the first time that it names, at or after another.
    pub(super) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        let from = from.to_zoned(TimeZone::UTC).ok()?;
        self.cron.find_next_occurrence(&from, true).ok().map(|found| found.datetime())
    }
}

fn parser() -> CronParser {
    CronParser::builder().year(Year::Disallowed).build()
}

/// Returns what is wrong with a field whose step is larger than its values: it would name its first value alone, not a
/// time every so often.
fn too_large_step((field, (name, _)): (&&str, &(&str, &str))) -> Option<String> {
    let values = match *name {
        "second" | "minute" => 60,
        "hour" => 24,
        "day of the month" => 31,
        "month" => 12,
        _ => 7,
    };
    let steps = field.split(',').filter_map(|part| part.split_once('/')?.1.parse::<u64>().ok());
    let step = steps.filter(|step| *step > values).max()?;
    let field = shown(field);
    Some(format!(
        "`{field}` has a step of {step}, but there are {values} values of the {name}: it does not mean every {step}; name the \
         times, or use several periodic jobs"
    ))
}

fn meaning(word: &str) -> Result<&'static str, String> {
    if word.eq_ignore_ascii_case("@reboot") {
        return Err("@reboot names no time, and the supervisors of several machines share a periodic job; a \
                    systemd unit that runs hero submit starts a job with its machine"
            .to_owned());
    }
    let known = WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known));
    known.map(|(_, line)| *line).ok_or_else(|| {
        let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        format!("unknown word `{}`: known are {}", shown(word), words.join(", "))
    })
}

/// Returns what is wrong with a line: the first field that is illegal where all others are not.
fn mistake(fields: &[&str], legal: &[(&str, &str)]) -> String {
    let is_illegal = |at: &usize| {
        let alone: Vec<&str> =
            (0..fields.len()).map(|other| if other == *at { fields[*at] } else { "*" }).collect();
        parser().parse(&alone.join(" ")).is_err()
    };
    match (0..fields.len()).find(is_illegal) {
        Some(at) => {
            let ((name, values), field) = (legal[at], shown(fields[at]));
            format!(
                "`{field}` is no {name}: {values}; also lists such as 1,5, ranges such as 1-5 and steps \
                 such as */2"
            )
        }
        None => "its fields do not go together".to_owned(),
    }
}
