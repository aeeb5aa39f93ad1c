//! The place of a job in a trace: a `traceparent` of W3C's trace context, version 00.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::{IllegalName, is_hexadecimal};

/// A `traceparent`: the trace, the span that is the parent of what is done next, and the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    trace: u128,
    span: u64,
    flags: u8,
}

impl TraceParent {
    pub const FORM: &'static str = "00-TRACE-SPAN-FLAGS of 32, 16 and 2 hexadecimal digits in small letters, TRACE and SPAN not all 0";
    /// The environment variable that carries one from a program to its children.
    pub const VARIABLE: &'static str = "TRACEPARENT";
    /// The header that carries one with a request or message.
    pub const HEADER: &'static str = "traceparent";
    /// The bytes of version 00.
    const BYTES: usize = 55;
    /// The flag of a trace that is recorded.
    const SAMPLED: u8 = 1;

    /// Returns a new trace with these random numbers; `None` if one is 0.
    pub fn of_random(trace: u128, span: u64, is_sampled: bool) -> Option<Self> {
        let flags = if is_sampled { Self::SAMPLED } else { 0 };
        (trace != 0 && span != 0).then_some(Self { trace, span, flags })
    }

    /// Reads one that came by itself, in an environment or a header; an invalid one is as if it were not there. Of a
    /// later version it reads what version 00 has, as the standard says.
    pub fn inherited(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t']);
        let (version, rest) = text.split_once('-')?;
        if version == "00" {
            return text.parse().ok();
        }
        let is_later = version != "ff" && is_hexadecimal(version.as_bytes(), 2);
        let (known, further) = rest.split_at_checked(Self::BYTES - "00-".len())?;
        let read = read(&format!("00-{known}"))?;
        let is_known = is_later && (further.is_empty() || further.starts_with('-'));
        is_known.then_some(Self { flags: read.flags & Self::SAMPLED, ..read })
    }

    /// Returns the id of the trace, 32 digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Returns the id of the span, 16 digits.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span)
    }

    pub fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    /// Returns the same trace with another span as the parent.
    #[must_use]
    pub fn below(self, span: u64) -> Self {
        Self { span, ..self }
    }
}

impl FromStr for TraceParent {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        read(value).ok_or_else(|| IllegalName::new("traceparent", value, Self::FORM))
    }
}

fn read(value: &str) -> Option<TraceParent> {
    let mut parts = value.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_whole = version == "00" && parts.next().is_none();
    let are_legal = [(trace, 32), (span, 16), (flags, 2)];
    if !is_whole || !are_legal.iter().all(|(text, length)| is_hexadecimal(text.as_bytes(), *length))
    {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some(TraceParent { trace, span, flags: u8::from_str_radix(flags, 16).ok()? })
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEGAL: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn legal_one_is_written_as_it_was_read() {
        for text in [LEGAL, "00-00000000000000000000000000000001-0000000000000001-00"] {
            let read: TraceParent = text.parse().expect("legal");
            assert_eq!(read.to_string(), text);
        }
        let read: TraceParent = LEGAL.parse().expect("legal");
        assert_eq!(read.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(
            read.below(10).to_string(),
            LEGAL.replace("00f067aa0ba902b7", "000000000000000a")
        );
        assert!(read.is_sampled());
    }

    #[test]
    fn every_other_text_is_refused() {
        let changed = |from: &str, to: &str| LEGAL.replacen(from, to, 1);
        for wrong in [
            String::new(),
            changed("00-", "01-"),
            changed("00-", "ff-"),
            LEGAL.to_uppercase(),
            format!("{LEGAL}-00"),
            format!("{LEGAL} "),
            changed("-01", "-1"),
            changed("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            changed("00f067aa0ba902b7", &"0".repeat(16)),
            changed("4bf", "+bf"),
            changed("4bf", "gbf"),
            changed("4b", "é"),
        ] {
            assert!(wrong.parse::<TraceParent>().is_err(), "{wrong}");
        }
        assert_eq!(TraceParent::inherited("junk"), None);
        assert!(TraceParent::inherited(&format!(" {LEGAL}\t")).is_some());
    }

    #[test]
    fn inherited_one_of_a_later_version_is_read_as_far_as_it_is_known() {
        let later = |rest: &str| LEGAL.replacen("00-", "cc-", 1) + rest;
        let read = |text: &str| TraceParent::inherited(text).map(|read| read.to_string());
        for text in [later(""), later("-"), later("-what-the-future-brings")] {
            assert_eq!(read(&text).as_deref(), Some(LEGAL), "{text}");
        }
        assert_eq!(read(&later("").replace("-01", "-ff")).as_deref(), Some(LEGAL));
        for wrong in [
            later("x"),
            later("").replacen("cc-", "ff-", 1),
            later("").replacen("cc-", "c-", 1),
            later("").replacen("cc-", "CC-", 1),
            later("").replacen("4bf", "gbf", 1),
            later("")[..54].to_owned(),
            format!("{LEGAL}-00"),
            "cc-é".repeat(40),
            "cc-".to_owned() + &"0".repeat(1 << 20),
        ] {
            assert_eq!(read(&wrong), None, "{wrong:.80}");
        }
    }
}
