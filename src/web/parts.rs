//! Parts that several pages use. All are pure: they take values and return markup.

mod input;
mod list;
mod number;
mod state;
mod table;
mod time;

pub(super) use input::{
    Confirm, confirm, described, filter_choice, given, labelled, options, or_any, search, select,
};
pub(super) use list::{
    Paged, bar, bulk, correction_head, empty, fact_list, first_line, head, id_link, page_link,
    pager, row_button, short_id, shortened, tick, type_link,
};
pub(super) use number::{count, meter, percent, percent_of, rate, things};
pub(super) use state::{ShownState, glyph, sign};
pub(super) use table::PageTable;
pub(super) use time::{ago, ago_or_dash, duration, elapsed, instant, time_of, until, was, was_at};
