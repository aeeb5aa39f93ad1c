//! Parts that several pages use. All are pure: they take values and return markup.

mod input;
mod list;
mod number;
mod state;
mod time;

pub(super) use input::{
    Confirm, confirm, described, filter_choice, given, labelled, options, or_any, search, select,
    with_value,
};
pub(super) use list::{
    Paged, bar, bulk, columns, data_table, empty, empty_row, first_line, group_row, head, id_link,
    live_table, pager, pick, pick_all, short_id, shortened, table,
};
pub(super) use number::{count, meter, percent, percent_of, rate, things};
pub(super) use state::{ShownState, glyph, sign};
pub(super) use time::{ago, duration, elapsed, instant, time_of, until, was, was_at};
