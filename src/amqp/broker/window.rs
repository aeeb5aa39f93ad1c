//! The number of messages that a dispatcher may hold: small at first, so that a slow one leaves messages
//! to others, and larger while it has free slots for more.

/// The maximum number of messages that are handed over in one call.
pub(super) const BATCH_MAX: usize = 64;
/// The window of a new consumer.
const FIRST: u16 = 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    size: u16,
    max: u16,
}

impl Window {
    /// Returns the window of a new consumer; it never holds more than `max`.
    pub(super) fn new(max: u16) -> Self {
        Self { size: FIRST.min(max), max }
    }

    pub(super) fn size(self) -> u16 {
        self.size
    }

    /// Returns the larger window after a batch that came while `held` messages were being served: if the
    /// batch has filled the window, and most of its slots were free. `None` if it stays as it is.
    pub(super) fn grown(self, batch: usize, held: usize) -> Option<Self> {
        let size = usize::from(self.size);
        let is_full = batch + held >= size.min(BATCH_MAX);
        let has_free_slots = held <= size / 4;
        let can_grow = self.size < self.max;
        (is_full && has_free_slots && can_grow)
            .then(|| Self { size: self.size.saturating_mul(2).min(self.max), ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_with_free_slots_up_to_its_bound() {
        let mut window = Window::new(50);
        assert!(window.grown(15, 0).is_none(), "messages would come if there were more");
        assert!(window.grown(8, 8).is_none(), "what it holds is slow");
        let mut sizes = vec![window.size()];
        while let Some(larger) = window.grown(usize::from(window.size()), 0) {
            window = larger;
            sizes.push(window.size());
        }
        assert_eq!(sizes, [16, 32, 50]);
        assert_eq!(Window::new(3).size(), 3);
        // A batch has a bound of its own.
        let large = Window { size: 1024, max: 2048 };
        assert_eq!(large.grown(BATCH_MAX, 0).map(Window::size), Some(2048));
    }
}
