//! Draws the screen.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Block, Borders, Cell as TableCell, Paragraph, Row as TableRow, Table, TableState,
};

use super::super::table::{self, without_middle};
use super::super::terminal_style::ColorChoice;
use super::job_view::JobView;
use super::jobs_view::JobsView;
use super::panes::{Cell, ListRow, ORDERS, Pane, Tone};
use super::screen::{KEYS, Screen, ScreenView};
use super::screen_data::{JOBS_MAX, ScreenData};
use crate::proto::text::{counted, escape};
use crate::store::TypeState;
use crate::view::{ActorCount, NamespaceHealth, Problem, Severity};

/// Below this width or height, one list is shown at a time.
const SMALL: (u16, u16) = (80, 18);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalFeatures {
    pub(super) colour: bool,
    /// Characters beyond ASCII.
    pub(super) unicode: bool,
}

impl TerminalFeatures {
    /// Reads what the environment tells of the terminal.
    pub(super) fn of_terminal(choice: ColorChoice) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
        let locale = locale.iter().find(|value| !value.is_empty());
        let is_utf8 = |value: &String| value.to_lowercase().replace('-', "").contains("utf8");
        Self { colour: choice.is_on(true), unicode: locale.is_some_and(is_utf8) }
    }

    fn mark(self) -> &'static str {
        if self.unicode { "…" } else { "~" }
    }

    fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        match tone {
            Tone::Dim if self.colour => style.fg(Color::DarkGray),
            Tone::Warning if self.colour => style.fg(Color::Yellow),
            Tone::Bad if self.colour => style.fg(Color::Red),
            Tone::Running if self.colour => style.fg(Color::Cyan),
            Tone::Bad => style.add_modifier(Modifier::BOLD),
            Tone::Plain | Tone::Dim | Tone::Warning | Tone::Running => style,
        }
    }

    fn block(self, title: String, is_focused: bool) -> Block<'static> {
        let set = if self.unicode { border::PLAIN } else { ASCII };
        let tone = if is_focused { Tone::Running } else { Tone::Dim };
        let title_style =
            if is_focused { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        Block::new()
            .borders(Borders::ALL)
            .border_set(set)
            .border_style(self.style(tone))
            .title(Span::styled(title, title_style))
    }
}

const ASCII: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// Draws the screen, and tells it how many rows its list has room for.
pub(super) fn draw(frame: &mut Frame, screen: &mut Screen, look: TerminalFeatures) {
    let [head, problem, body, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, screen, look);
    draw_problem(frame, problem, screen, look);
    draw_foot(frame, foot, screen, look);
    match (screen.view, &screen.job) {
        (ScreenView::Keys, _) => draw_keys(frame, body, look),
        (ScreenView::Job, Some(job)) => screen.page = draw_job(frame, body, job, look),
        _ => screen.page = draw_lists(frame, body, screen, look),
    }
}

fn draw_head(frame: &mut Frame, area: Rect, screen: &Screen, look: TerminalFeatures) {
    let Some(snapshot) = &screen.snapshot else {
        frame.render_widget(Paragraph::new("hero top: reading the state …"), area);
        return;
    };
    let style = if screen.trouble.is_some() { look.style(Tone::Dim) } else { Style::new() };
    let address = format!("hero on {}", escape(&snapshot.snapshot.address));
    let lines = [
        cut(&address, area.width.saturating_sub(14).into(), look),
        live(snapshot),
        waiting(snapshot),
    ];
    frame.render_widget(Paragraph::new(lines.map(Line::from).to_vec()).style(style), area);
    let time = snapshot.snapshot.at.strftime("%H:%M:%S").to_string();
    let time = Paragraph::new(format!("{time} UTC")).alignment(Alignment::Right);
    let width = area.width.min(13);
    let corner = Rect { x: area.right() - width, width, height: area.height.min(1), ..area };
    frame.render_widget(time.style(style), corner);
}

/// Returns the line of who is live, and of what comes and ends.
fn live(data: &ScreenData) -> String {
    let snapshot = &data.snapshot;
    let sum = |of: fn(&ActorCount) -> usize| snapshot.actor_counts.values().map(of).sum::<usize>();
    let (running, tasks) = (sum(|count| count.running), sum(|count| count.tasks));
    let supervisors = counted(snapshot.supervisors.len() as u64, "supervisor", "supervisors");
    let actors = counted(snapshot.actors.len() as u64, "actor", "actors");
    let brokers = match snapshot.live_brokers().count() {
        0 if snapshot.brokers.is_empty() => String::new(),
        live => format!(", {}", counted(live as u64, "broker", "brokers")),
    };
    let line = format!("{supervisors}, {actors}{brokers}, {running} of {tasks} tasks busy");
    let Some([submitted, finished, failed]) = data.rates else { return line };
    format!("{line}; in {submitted:.1}/s, done {finished:.1}/s, failed {failed:.1}/s")
}

fn waiting(data: &ScreenData) -> String {
    let snapshot = &data.snapshot;
    let queued: u64 = snapshot.queues.iter().map(|(state, _)| state.depth).sum();
    let held: u64 = snapshot.queues.iter().map(|(state, _)| state.held).sum();
    let sum = |of: fn(&TypeState) -> u64| snapshot.types.iter().map(of).sum::<u64>();
    let (waiting, scheduled) = (sum(|of| of.waiting), sum(|of| of.scheduled));
    let dead = sum(|of| of.dead);
    format!(
        "queued {queued}, held {held}, waiting for prerequisites {waiting}, scheduled {scheduled}, \
         dead letters {dead}"
    )
}

/// The worst that is wrong, in one line.
fn draw_problem(frame: &mut Frame, area: Rect, screen: &Screen, look: TerminalFeatures) {
    let health = screen.snapshot.as_ref().map(|of| &of.health);
    let problems: Vec<&Problem> = health.into_iter().flat_map(NamespaceHealth::wrong).collect();
    let (tone, text) = match (&screen.trouble, problems.as_slice()) {
        (Some(trouble), _) => (Tone::Bad, format!("Old numbers: {trouble}")),
        (None, [first, rest @ ..]) => {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" (and {more} more: hero doctor)"),
            };
            let is_critical = first.severity == Severity::Critical;
            let tone = if is_critical { Tone::Bad } else { Tone::Warning };
            (tone, format!("{}{more}", first.text))
        }
        (None, []) if screen.snapshot.is_some() => (Tone::Dim, "Nothing needs you.".to_owned()),
        (None, []) => (Tone::Dim, String::new()),
    };
    draw_line(frame, area, tone, &text, look);
}

fn draw_line(frame: &mut Frame, area: Rect, tone: Tone, text: &str, look: TerminalFeatures) {
    let text = cut(&escape(text), area.width.into(), look);
    frame.render_widget(Paragraph::new(text).style(look.style(tone)), area);
}

fn draw_foot(frame: &mut Frame, area: Rect, screen: &Screen, look: TerminalFeatures) {
    let (tone, text) = match &screen.told {
        _ if screen.is_typing => (Tone::Plain, format!("show only: {}_", screen.typed())),
        Some(Ok(done)) => (Tone::Plain, done.clone()),
        Some(Err(trouble)) => (Tone::Bad, trouble.clone()),
        None if screen.view == ScreenView::Job => {
            (Tone::Dim, "Esc back  s stop  r retry  up, down scroll  ? keys  q quit".to_owned())
        }
        None if screen.view == ScreenView::Jobs => {
            let keys =
                "Enter look  s stop  r retry  left, right: state  / search  Esc back  ? keys";
            (Tone::Dim, keys.to_owned())
        }
        None if !screen.filter.is_empty() => {
            (Tone::Warning, format!("only rows with: {}   Esc shows all", screen.filter))
        }
        None => {
            let acts = match screen.focus() {
                Pane::Queues => "Enter jobs  p pause  o order",
                Pane::Actors => "d drain",
                Pane::Running => "Enter look  s stop",
                Pane::Failures | Pane::Jobs => "Enter look  r retry",
            };
            (Tone::Dim, format!("{acts}  tab next  l all jobs  / filter  ? keys  q quit"))
        }
    };
    draw_line(frame, area, tone, &text, look);
}

fn draw_keys(frame: &mut Frame, area: Rect, look: TerminalFeatures) {
    let lines: Vec<Line> = KEYS.map(|(key, act)| Line::from(format!(" {key:24}{act}"))).to_vec();
    let block = look.block(" Keys ".to_owned(), true);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Draws the fields above the log. Returns the lines that the log has room for.
fn draw_job(frame: &mut Frame, area: Rect, job: &JobView, look: TerminalFeatures) -> usize {
    let wanted = u16::try_from(job.fields.len()).unwrap_or(u16::MAX).saturating_add(2);
    let top = wanted.min(area.height * 3 / 5);
    let [fields, log] =
        Layout::vertical([Constraint::Length(top), Constraint::Fill(1)]).areas(area);
    let lines: Vec<Line> = job.fields.iter().map(|line| Line::from(line.as_str())).collect();
    let block = look.block(format!(" Job {} ", job.id), false);
    frame.render_widget(Paragraph::new(lines).block(block), fields);
    let height = usize::from(log.height.saturating_sub(2));
    let lines: Vec<Line> = job.log_shown(height).map(Line::from).collect();
    let title = if job.follows() { " Log, followed " } else { " Log, stopped: End follows " };
    let block = look.block(title.to_owned(), true);
    frame.render_widget(Paragraph::new(lines).block(block), log);
    height
}

/// Draws the lists. Returns the rows that the focused one has room for.
fn draw_lists(frame: &mut Frame, area: Rect, screen: &Screen, look: TerminalFeatures) -> usize {
    let focus = screen.focus();
    if focus == Pane::Jobs || area.width < SMALL.0 || area.height < SMALL.1 {
        draw_list(frame, area, screen, focus, look);
        return usize::from(area.height.saturating_sub(3));
    }
    let [top, running, failures] =
        Layout::vertical([Constraint::Fill(5), Constraint::Fill(4), Constraint::Fill(4)])
            .areas(area);
    let [queues, actors] =
        Layout::horizontal([Constraint::Fill(4), Constraint::Fill(3)]).areas(top);
    let areas = [queues, actors, running, failures];
    for (pane, area) in Pane::ALL.into_iter().zip(areas) {
        draw_list(frame, area, screen, pane, look);
    }
    usize::from(areas[focus as usize].height.saturating_sub(3))
}

fn draw_list(frame: &mut Frame, area: Rect, screen: &Screen, pane: Pane, look: TerminalFeatures) {
    let (rows, place) = screen.rows(pane);
    let is_focused = screen.focus() == pane;
    let title = cut(&title(screen, pane, rows.len()), area.width.saturating_sub(4).into(), look);
    let block = look.block(format!(" {title} "), is_focused);
    if rows.is_empty() {
        let text = match (&screen.snapshot, &screen.jobs) {
            (Some(_), Some(JobsView { found: None, .. })) if pane == Pane::Jobs => "Reading …",
            (Some(_), Some(JobsView { found: Some(found), .. }))
                if pane == Pane::Jobs && !found.complete =>
            {
                "No job among those that were searched; older ones were not."
            }
            (Some(_), _) if screen.filter.is_empty() || pane == Pane::Jobs => {
                pane.about().when_empty
            }
            (Some(_), _) => "No row has this text.",
            (None, _) => "",
        };
        let text = Paragraph::new(Span::styled(text, look.style(Tone::Dim)));
        frame.render_widget(text.block(block), area);
        return;
    }
    let columns = pane.about().columns;
    let widths = columns.iter().map(|(_, width)| match *width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(width),
    });
    let head = columns.iter().map(|(title, _)| aligned(title.replace('>', ""), title));
    let head = TableRow::new(head).style(look.style(Tone::Dim));
    let chosen = Style::new().add_modifier(Modifier::REVERSED);
    // The borders, the columns of a known width, and a space before each of them.
    let known: u16 = columns.iter().map(|(_, width)| width + u16::from(*width > 0)).sum();
    let left = area.width.saturating_sub(2 + known).into();
    let table = Table::new(rows.iter().map(|row| drawn(row, pane, left, look)), widths)
        .header(head)
        .block(block)
        .row_highlight_style(if is_focused { chosen } else { Style::new() });
    let mut state = TableState::new().with_selected(Some(place));
    frame.render_stateful_widget(table, area, &mut state);
}

fn title(screen: &Screen, pane: Pane, rows: usize) -> String {
    match (pane, &screen.jobs) {
        (Pane::Jobs, Some(jobs)) => escape(&jobs.title()),
        (Pane::Queues, _) if screen.order > 0 => {
            format!("{} {rows}, by {}", pane.about().title, ORDERS[screen.order].0)
        }
        _ => {
            let read = screen.snapshot.as_ref().map_or(0, |of| match pane {
                Pane::Running => of.latest.running.len(),
                Pane::Failures => of.latest.failed.len(),
                _ => 0,
            });
            // So many are read at most.
            let more = if read >= JOBS_MAX { "+" } else { "" };
            format!("{} {rows}{more}", pane.about().title)
        }
    }
}

/// Draws a row; `left` is the width of its widest column.
fn drawn(row: &ListRow, pane: Pane, left: usize, look: TerminalFeatures) -> TableRow<'static> {
    let cells = row.cells.iter().zip(pane.about().columns);
    let cells = cells.map(|(Cell { text, tone }, (title, width))| {
        let text = match (*width, pane) {
            // Names of queues begin alike.
            (0, Pane::Queues) => cut_in_middle(text, left, look),
            (0, _) => text.clone(),
            (width, _) => cut(text, width.into(), look),
        };
        aligned(text, title).style(look.style(*tone))
    });
    TableRow::new(cells.collect::<Vec<_>>())
}

fn aligned(text: String, title: &str) -> TableCell<'static> {
    let line = Line::from(text);
    TableCell::from(if title.starts_with('>') { line.right_aligned() } else { line })
}

fn cut(text: &str, width: usize, look: TerminalFeatures) -> String {
    table::cut(text, width, look.mark())
}

/// Cuts the middle out of a text, with a mark: its start and its end stay.
fn cut_in_middle(text: &str, width: usize, look: TerminalFeatures) -> String {
    let room = width.saturating_sub(1);
    without_middle(text, width, room - room * 2 / 3, look.mark())
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::super::screen_data::tests::screen_data;
    use super::*;

    #[test]
    fn name_of_a_queue_keeps_its_begin_and_its_end() {
        let name = "type:python:group:reports:prio:0";
        assert_eq!(cut_in_middle(name, 16, PLAIN), "type:~rts:prio:0");
        assert_eq!(cut_in_middle(name, 40, PLAIN), name);
    }

    const PLAIN: TerminalFeatures = TerminalFeatures { colour: false, unicode: false };

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, screen, PLAIN)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn title_of_a_list_that_may_lack_jobs_says_so() {
        let (mut screen, mut now) = (Screen::default(), screen_data());
        now.latest.failed = vec![now.latest.failed[0].clone(); JOBS_MAX];
        screen.show(now);
        assert_eq!(title(&screen, Pane::Failures, JOBS_MAX), "Failures 200+");
        assert_eq!(title(&screen, Pane::Running, 1), "Running 1");
    }

    #[test]
    fn eighty_columns_and_twenty_four_lines_show_all_four_lists() {
        let mut screen = Screen::default();
        screen.show(screen_data());
        let shown = drawn(&mut screen, 80, 24);
        for part in [
            "1 supervisor, 0 actors, 1 of 8 tasks busy",
            "in 12.0/s, done 11.5/s",
            "queue type:osis has 3 jobs and no live actor",
            "type:osis",
            "No actor is live.",
            "7f9c2ba4",
            "[#####.....]  50% half",
            "no such file",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }

    #[test]
    fn screen_of_any_size_is_drawn() {
        let mut screen = Screen::default();
        for size in [(1, 1), (3, 2), (20, 5), (79, 24), (80, 10), (300, 100)] {
            drawn(&mut screen, size.0, size.1);
            screen.show(screen_data());
            drawn(&mut screen, size.0, size.1);
            for code in [KeyCode::Char('?'), KeyCode::Esc, KeyCode::Tab, KeyCode::Enter] {
                screen.press(KeyEvent::from(code));
                drawn(&mut screen, size.0, size.1);
            }
        }
    }

    #[test]
    fn lost_redis_is_shown_above_the_last_numbers() {
        let mut screen = Screen::default();
        screen.show(screen_data());
        screen.trouble = Some("redis at one cannot be reached".to_owned());
        let shown = drawn(&mut screen, 100, 24);
        assert!(shown.contains("Old numbers: redis at one cannot be reached"));
        assert!(shown.contains("type:osis"), "{shown}");
    }
}
