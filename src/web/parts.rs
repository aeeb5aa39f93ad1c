//! Parts that several pages use. All are pure: they take values and return markup.

mod confirm;
mod input;
mod list;
mod number;
mod pick;
mod problem;
mod state;
mod tile;
mod time;

pub(super) use confirm::{Confirm, confirm};
pub(super) use input::{
    described, filter_choice, given, labelled, options, or_any, select, with_value,
};
pub(super) use list::{
    Paged, columns, data_table, empty, empty_row, first_line, group_row, id_link, live_table,
    pager, short_id, table,
};
pub(super) use number::{count, meter, percent, rate, things};
pub(super) use pick::{bulk, pick, pick_all};
pub(super) use problem::{PageProblem, problems};
pub(super) use state::{ShownState, sign};
pub(super) use tile::{Tile, tiles};
pub(super) use time::{ago, duration, elapsed, instant, time_of, until, was, was_at};
