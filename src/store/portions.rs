//! Cuts work into calls. A script stops Redis for everyone, so the work of one call is bounded in bytes,
//! in jobs and in links between jobs, by one measure: the bytes that take as long.

/// The work of one call: about 5 ms. One item alone may exceed it.
pub(super) const WORK_PER_CALL: usize = 1 << 20;
/// The work of one job beside its bytes.
pub(super) const JOB_WORK: usize = 4 << 10;
/// The work of one link between jobs, such as a prerequisite.
pub(super) const LINK_WORK: usize = 2 << 10;

/// Cuts items into portions, each the work of one call: as many items as fit, and at least one.
pub(super) fn portions<T>(items: &[T], work: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut left = items;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let fitting = left.iter().take_while(|item| {
            sum += work(item);
            sum <= WORK_PER_CALL
        });
        let number = fitting.count().max(1).min(left.len());
        let (portion, rest) = left.split_at(number);
        left = rest;
        (!portion.is_empty()).then_some(portion)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_has_at_least_one_item_and_no_more_than_the_work_of_one_call() {
        let half = WORK_PER_CALL / 2;
        let work = [half, half, 1, 2 * WORK_PER_CALL, half, half + 1];
        let cut: Vec<usize> = portions(&work, |work| *work).map(<[usize]>::len).collect();
        assert_eq!(cut, [2, 1, 1, 1, 1]);
        assert_eq!(portions(&[0; 0], |work: &usize| *work).count(), 0);
        assert_eq!(portions(&[JOB_WORK; 1000], |work| *work).next().map(<[usize]>::len), Some(256));
    }
}
