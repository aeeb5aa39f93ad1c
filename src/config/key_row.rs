//! A row of the table: one key, the values that it takes, and the text about it.

/// A table of the file, such as `[job]`, `[type.NAME.limits]` or `[[amqp.route]]`, with its keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyTable {
    /// Its name; a part in capitals stands for a name that an operator chooses.
    pub path: &'static str,
    /// The text about it, as in [`KeyRow::text`].
    pub about: &'static [&'static str],
    /// Its keys, in the order of the file and of the page.
    pub rows: &'static [KeyRow],
    /// True if the file may have several, `[[NAME]]`.
    pub is_list: bool,
    /// True if its keys need a restart.
    pub needs_restart: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct KeyRow {
    pub key: &'static str,
    pub kind: KeyKind,
    /// The text about it, in Markdown: paragraphs, and examples that begin with four spaces. Lines after a line
    /// `---` stand in the page only, not in the file. A row without text shares the text of the row before.
    pub text: &'static [&'static str],
    /// True if a reload does not apply it.
    pub needs_restart: bool,
}

/// The values that a key takes. Bounds are inclusive; durations are in milliseconds, sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Flag,
    Text,
    OneOf(&'static [&'static str]),
    Texts,
    SomeOf(&'static [&'static str]),
    /// Texts by name.
    Map,
    /// Texts and numbers by name.
    Labels,
    /// The absolute path of a file; empty for none.
    File,
    /// The absolute path of a folder, without `..`.
    Folder,
    /// The same, or empty for none.
    FolderOrNone,
    /// Absolute paths without `..`.
    Folders,
    Number(u64, u64),
    Numbers(u64, u64),
    /// A number with decimals, from 0.
    Decimal(u32),
    Duration(u64, u64),
    Durations(u64, u64),
    Size(u64, u64),
    /// A value of a form of its own, which its text describes.
    Form,
}

pub(super) const SECOND: u64 = 1000;
pub(super) const HOUR: u64 = 3600 * SECOND;
pub(super) const DAY: u64 = 24 * HOUR;
/// Redis counts milliseconds since 1970 in 64 bits; ten years stay far from that limit.
pub(super) const TEN_YEARS: u64 = 3650 * DAY;
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;
pub(super) const PIB: u64 = 1 << 50;
/// The longest string that Redis holds.
pub(super) const REDIS_STRING: u64 = 512 * MIB;
/// TOML has no larger numbers.
pub(super) const ANY: u64 = i64::MAX.unsigned_abs();

impl KeyTable {
    pub(super) const fn list(self) -> Self {
        Self { is_list: true, ..self }
    }

    pub(super) const fn restart(self) -> Self {
        Self { needs_restart: true, ..self }
    }

    /// Returns the part of its path before the names that an operator chooses.
    pub fn fixed_path(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.').take_while(|part| !is_chosen(part))
    }

    /// Returns true if an operator chooses a part of its path, or may have several of it.
    pub fn is_open(&self) -> bool {
        self.is_list || self.path.split('.').any(is_chosen)
    }
}

impl KeyRow {
    pub(super) const fn restart(self) -> Self {
        Self { needs_restart: true, ..self }
    }
}

/// Returns true for the part of a path that stands for a name.
pub(super) fn is_chosen(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Returns the key of a row: the word for it, or the name of its field, which may be a word of Rust.
pub(crate) const fn key_of(field: &'static str, word: &[&'static str]) -> &'static str {
    match (word, field.as_bytes()) {
        ([word, ..], _) => word,
        (_, [b'r', b'#', ..]) => field.split_at(2).1,
        _ => field,
    }
}

/// Declares a [`KeyTable`]: its text, its name as a constant, its path, and a row for each key. A row is its text
/// as a comment and `KEY: KIND;`. `, restart` after a kind or a path says that a reload does not apply it.
macro_rules! key_table {
    (
        $(#[doc = $about:literal])*
        $name:ident = $path:literal $(, $form:ident)*;
        $(
            $(#[doc = $text:literal])*
            $key:ident $(named $word:literal)?: $kind:ident $(($($bound:expr),+))? $(, $flag:ident)*;
        )*
    ) => {
        pub(crate) const $name: $crate::config::KeyTable = $crate::config::KeyTable {
            path: $path,
            about: &[$($about),*],
            rows: &[$($crate::config::KeyRow {
                key: $crate::config::key_row::key_of(stringify!($key), &[$($word)?]),
                kind: $crate::config::KeyKind::$kind $(($($bound),+))?,
                text: &[$($text),*],
                needs_restart: false,
            }$(.$flag())*),*],
            is_list: false,
            needs_restart: false,
        }$(.$form())*;
    };
}
pub(super) use key_table;
