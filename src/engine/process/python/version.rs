//! Which versions of Python a script runs with: the part of PEP 440 that scripts use.

/// One condition on a version, of those that have to hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    comparison: Comparison,
    /// The numbers of the version; `3.11` is two.
    numbers: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Above,
    Below,
    Is,
    IsNot,
    /// As the version, up to its last number.
    Starts,
    StartsNot,
    Compatible,
}

/// What a version has to fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Demand(Vec<Condition>);

impl Demand {
    /// Reads `>=3.11, <4`; `None` if it is no such thing. The empty text demands nothing.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(Condition::parse).collect::<Option<Vec<_>>>().map(Self)
    }

    /// Whether a version, as `3.11.2`, fulfils it.
    pub(super) fn allows(&self, version: &str) -> bool {
        let Some(version) = numbers(version) else { return false };
        self.0.iter().all(|condition| condition.allows(&version))
    }
}

impl Condition {
    fn parse(text: &str) -> Option<Self> {
        const SIGNS: [(&str, Comparison); 7] = [
            (">=", Comparison::AtLeast),
            ("<=", Comparison::AtMost),
            ("~=", Comparison::Compatible),
            ("==", Comparison::Is),
            ("!=", Comparison::IsNot),
            (">", Comparison::Above),
            ("<", Comparison::Below),
        ];
        let (sign, comparison) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign))?;
        let version = text[sign.len()..].trim();
        let (version, comparison) = match (version.strip_suffix(".*"), comparison) {
            (Some(version), Comparison::Is) => (version, Comparison::Starts),
            (Some(version), Comparison::IsNot) => (version, Comparison::StartsNot),
            (Some(_), _) => return None,
            (None, comparison) => (version, *comparison),
        };
        let numbers = numbers(version)?;
        let is_enough = comparison != Comparison::Compatible || numbers.len() > 1;
        is_enough.then_some(Self { comparison, numbers })
    }

    fn allows(&self, version: &[u32]) -> bool {
        let starts = |numbers: &[u32]| cut(version, numbers.len()) == numbers;
        let length = version.len().max(self.numbers.len());
        let order = cut(version, length).cmp(&cut(&self.numbers, length));
        match self.comparison {
            Comparison::AtLeast => order.is_ge(),
            Comparison::AtMost => order.is_le(),
            Comparison::Above => order.is_gt(),
            Comparison::Below => order.is_lt(),
            Comparison::Is => order.is_eq(),
            Comparison::IsNot => order.is_ne(),
            Comparison::Starts => starts(&self.numbers),
            Comparison::StartsNot => !starts(&self.numbers),
            Comparison::Compatible => {
                order.is_ge() && starts(&self.numbers[..self.numbers.len() - 1])
            }
        }
    }
}

/// The first so many numbers, with zeros where there are fewer.
fn cut(version: &[u32], length: usize) -> Vec<u32> {
    version.iter().copied().chain(std::iter::repeat(0)).take(length).collect()
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    let is_plain = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_plain.then(|| version.split('.').map(|part| part.parse().ok()).collect())?
}

#[cfg(test)]
mod tests {
    use super::Demand;

    #[test]
    fn versions_are_compared_number_by_number() {
        for (demand, allowed, refused) in [
            ("", "3.11.2", "x"),
            (">=3.11", "3.11.0", "3.9.18"),
            (">=3.9, <3.12", "3.11.2", "3.12.0"),
            ("==3.11.*", "3.11.9", "3.1.1"),
            ("!=3.11.*", "3.10.0", "3.11.2"),
            ("~=3.10", "3.12.1", "4.0.0"),
            ("~=3.11.1", "3.11.7", "3.12.0"),
            (">3.11", "3.11.1", "3.11.0"),
            ("<=3.11", "3.11.0", "3.11.1"),
            ("==3.11", "3.11.0", "3.11.1"),
            ("!=3.11", "3.11.1", "3.11.0"),
        ] {
            let demand_of = Demand::parse(demand).expect(demand);
            assert!(demand_of.allows(allowed), "{demand} {allowed}");
            assert!(!demand_of.allows(refused), "{demand} {refused}");
        }
    }

    #[test]
    fn what_is_no_version_is_no_demand() {
        for text in ["3.11", ">=", ">=three", ">=3.*", "~=3", "=>3", ">=3..1", ">=3.99999999999"] {
            assert_eq!(Demand::parse(text), None, "{text}");
        }
    }
}
