//! Makes inputs of a corpus: the same ones for the same seed.

/// The largest input.
const BYTES_MAX: usize = 4096;
/// The most changes of one input.
const CHANGES_MAX: usize = 6;
/// Words that parsers get wrong.
const WORDS: [&str; 28] = [
    "0",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e999",
    "NaN",
    "null",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ":",
    "=",
    ",",
    "\n",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "ä",
    "\x1b[2J",
];

pub(super) struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    random: fastrand::Rng,
}

impl<'a> Mutator<'a> {
    pub(super) fn new(corpus: &'a [Vec<u8>], seed: u64) -> Self {
        Self { corpus, random: fastrand::Rng::with_seed(seed) }
    }

    /// Returns the next input.
    pub(super) fn next(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        for _ in 0..self.random.usize(1..=CHANGES_MAX) {
            self.change(&mut input);
            input.truncate(BYTES_MAX);
        }
        input
    }

    fn seed(&mut self) -> Vec<u8> {
        self.corpus[self.random.usize(..self.corpus.len())].clone()
    }

    /// Returns a part of an input, possibly empty.
    fn part(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let from = self.random.usize(..=input.len());
        let length = self.random.usize(..=(input.len() - from).min(32));
        from..from + length
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let part = self.part(input);
        match self.random.u8(..8) {
            0 => drop(input.drain(part)),
            1 => {
                for byte in &mut input[part] {
                    *byte = self.random.u8(..);
                }
            }
            2 => {
                let word = WORDS[self.random.usize(..WORDS.len())];
                input.splice(part, word.bytes());
            }
            3 => {
                let word = WORDS[self.random.usize(..WORDS.len())];
                input.splice(part.start..part.start, word.bytes());
            }
            4 => {
                let copy = input[part.clone()].repeat(self.random.usize(1..64));
                input.splice(part.start..part.start, copy);
            }
            5 => {
                let other = self.seed();
                let of_other = self.part(&other);
                input.splice(part, other[of_other].iter().copied());
            }
            6 => {
                let other = self.part(input);
                let copy = input[other].to_vec();
                input.splice(part, copy);
            }
            _ => {
                if let Some(byte) = input.get_mut(part.start) {
                    *byte ^= 1 << self.random.u8(..8);
                }
            }
        }
    }
}
