//! Stat tiles: a label, a number with its unit, a note, and the last hour as one line.

use std::fmt::Write as _;

use maud::{Markup, html};

#[derive(Debug, Clone, PartialEq)]
pub(in crate::web) struct Tile {
    pub(in crate::web) label: &'static str,
    pub(in crate::web) value: String,
    pub(in crate::web) unit: String,
    pub(in crate::web) note: String,
    /// The class of the colour.
    pub(in crate::web) class: &'static str,
    /// One value a minute, the oldest first. Empty without samples.
    pub(in crate::web) history: Vec<f64>,
}

/// Returns a strip of tiles. It has no id of its own: each tile is `tile-N`.
pub(in crate::web) fn tiles(all: &[Tile]) -> Markup {
    html! { dl #tiles .tiles { @for tile in all { (one(tile)) } } }
}

fn one(tile: &Tile) -> Markup {
    html! {
        div.tile {
            dt { (tile.label) }
            dd.v { (tile.value) small { (tile.unit) } }
            dd.note.cut title=(tile.note) { (tile.note) }
            @if tile.history.len() > 1 { dd { (spark(tile)) } }
        }
    }
}

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 36.0;

/// Draws the history as one path from zero.
fn spark(tile: &Tile) -> Markup {
    let line = line(&tile.history);
    let (least, most) = bounds(&tile.history);
    let label = format!(
        "{} over the last hour, between {} and {}",
        tile.label,
        super::number::rate(least),
        super::number::rate(most)
    );
    html! {
        svg class={ "spark " (tile.class) } viewBox="0 0 120 36" preserveAspectRatio="none" role="img"
            aria-label=(label) {
            path.a d={ (line) " 120,36 0,36Z" } {}
            path.l d=(line) {}
        }
    }
}

fn bounds(history: &[f64]) -> (f64, f64) {
    history.iter().fold((f64::MAX, 0.0), |(least, most), value| {
        (f64::min(least, *value), f64::max(most, *value))
    })
}

fn line(history: &[f64]) -> String {
    let (_, most) = bounds(history);
    let most = if most > 0.0 { most } else { 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "an hour has 60 samples")]
    let step = WIDTH / (history.len() - 1) as f64;
    let mut path = String::with_capacity(history.len() * 12);
    let mut x = 0.0;
    for value in history {
        let y = HEIGHT - 1.0 - value / most * (HEIGHT - 8.0);
        let _ = write!(path, "{}{x:.1},{y:.1}", if path.is_empty() { "M" } else { " " });
        x += step;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_a_line_from_zero_with_a_text_label() {
        assert_eq!(line(&[0.0, 2.0, 1.0]), "M0.0,35.0 60.0,7.0 120.0,21.0");
        assert_eq!(line(&[0.0, 0.0]), "M0.0,35.0 120.0,35.0");
        let tile = Tile {
            label: "Submitted",
            value: "1.0".to_owned(),
            unit: "/s".to_owned(),
            note: String::new(),
            class: "finished",
            history: vec![1.0, 3.0],
        };
        let markup = tiles(&[tile]).into_string();
        assert!(markup.contains("Submitted over the last hour, between 1.0 and 3.0"), "{markup}");
    }
}
