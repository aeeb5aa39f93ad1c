//! Parts that several pages use. All are pure: they take values and return markup.

mod confirm;
mod list;
mod number;
mod pick;
mod problem;
mod state;
mod tile;
mod time;

pub(super) use confirm::{Confirm, confirm};
pub(super) use list::{
    Paged, columns, data_table, empty, empty_row, first_line, id_link, pager, short_id,
};
pub(super) use number::{count, meter, percent, rate, things};
pub(super) use pick::{bulk, pick, pick_all};
pub(super) use problem::{PageProblem, problems};
pub(super) use state::{ShownState, glyph, sign};
pub(super) use tile::{Tile, tiles};
pub(super) use time::{ago, duration, elapsed, instant, time_of, until, was, was_at};
