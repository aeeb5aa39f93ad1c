//! The fate of an output that is larger than its bound.

use serde::Deserialize;

use super::output::JobOutput;
use crate::proto::word_table::words;

words! {
    /// The fate of an output over `job.output_size_max`.
    #[derive(Default, Deserialize)]
    OutputOverflow, "output_overflow", "truncate or fail", any_case;
    /// Its end is kept, after a mark.
    #[default]
    Truncate = "truncate",
    /// The job fails.
    Fail = "fail",
}

/// The mark before an output whose start is cut off, around the number of its bytes.
const MARK_BEGIN: &str = "[hero: the first ";
const MARK_END: &str = " bytes of the output were cut off]\n";

impl JobOutput {
    /// Returns the end of an output whose first `missing` bytes are gone already, cut to `bytes_max` with
    /// the mark before it, and the number of bytes that are cut off. Text is cut between characters, and
    /// between lines where one ends soon; other bytes are cut anywhere.
    pub fn truncated(kept: &[u8], missing: u64, bytes_max: u64) -> (Self, u64) {
        const MARK_BYTES_MAX: u64 = 128;
        const LINE_BYTES_MAX: usize = 4096;
        let room = usize::try_from(bytes_max.saturating_sub(MARK_BYTES_MAX)).unwrap_or(usize::MAX);
        let mut end = &kept[kept.len().saturating_sub(room)..];
        let continues = end.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
        if let Ok(text) = std::str::from_utf8(&end[continues..]) {
            let window = &text.as_bytes()[..text.len().min(LINE_BYTES_MAX)];
            let line = window.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            end = &text.as_bytes()[line.filter(|at| *at < text.len()).unwrap_or(0)..];
        }
        let cut = missing + (kept.len() - end.len()) as u64;
        let mark = format!("{MARK_BEGIN}{cut}{MARK_END}");
        (Self::from([mark.as_bytes(), end].concat()), cut)
    }

    /// Returns the number of bytes that are cut off before this output, if it begins with the mark.
    pub fn cut_bytes(&self) -> Option<u64> {
        let rest = self.as_bytes().strip_prefix(MARK_BEGIN.as_bytes())?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at(digits);
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        rest.starts_with(MARK_END.as_bytes()).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_cut_at_the_start_of_a_line_and_bytes_anywhere() {
        let text = "0123456789\n".repeat(100);
        let (output, cut) = JobOutput::truncated(text.as_bytes(), 5, 128 + 25);
        let mark = "[hero: the first 1083 bytes of the output were cut off]\n";
        assert_eq!(output, format!("{mark}0123456789\n0123456789\n").as_str());
        assert_eq!((cut, output.cut_bytes()), (5 + 1100 - 22, Some(cut)));
        for whole in
            ["", "[hero: the first ", "[hero: the first x bytes of the output were cut off]\n"]
        {
            assert_eq!(JobOutput::from(whole).cut_bytes(), None, "{whole}");
        }
        let (output, cut) = JobOutput::truncated(&[0xff; 300], 0, 128 + 10);
        assert_eq!((output.as_bytes().ends_with(&[b'\n', 0xff]), cut), (false, 290));
        assert!(matches!(output, JobOutput::Bytes(bytes) if bytes.ends_with(&[0xff; 10])));
    }

    proptest! {
        #[test]
        fn truncated_output_fits_and_text_stays_text(
            text in "[aé\n€🎈]{0,200}", bytes_max in 128_u64..400,
        ) {
            let (output, cut) = JobOutput::truncated(text.as_bytes(), 0, bytes_max);
            prop_assert!(output.as_bytes().len() as u64 <= bytes_max);
            prop_assert!(matches!(&output, JobOutput::Text(_)));
            let kept = output.to_string().split_once('\n').map(|(_, kept)| kept.to_owned());
            prop_assert_eq!(kept.unwrap_or_default().len() as u64 + cut, text.len() as u64);
        }
    }
}
