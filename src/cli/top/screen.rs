//! The state of the screen, and what each key does. Reads nothing and draws nothing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::job_view::JobView;
use super::jobs_view::{JobsView, JobsWanted};
use super::panes::{ListRow, ORDERS, Pane};
use super::screen_data::ScreenData;
use crate::proto::job::{Job, JobId};
use crate::proto::message::ActorState;
use crate::proto::queue::Queue;
use crate::proto::target::ActorId;
use crate::store::{FoundJobs, LogLine, QueueState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Quit,
    /// Show this job, and follow its log.
    Open(JobId),
    /// Show the list again from which the job was opened.
    Close,
    List(JobsWanted),
    Stop(JobId),
    Retry(JobId),
    Pause(Queue),
    Resume(Queue),
    Drain(ActorId),
    Undrain(ActorId),
}

impl Act {
    /// Returns the question before an act that ends work or holds it up.
    fn question(&self) -> Option<String> {
        let what = match self {
            Self::Stop(id) => format!("stop job {id}"),
            Self::Pause(queue) => format!("pause {queue}"),
            _ => return None,
        };
        Some(format!("{what}? y does it, any other key does not"))
    }
}

pub(super) const KEYS: [(&str, &str); 14] = [
    ("tab, left, right", "go to another list; in a list of jobs, to another state"),
    ("up, down, k, j", "select a row; in a job, scroll"),
    ("PgUp, PgDn, Home, End", "select farther away"),
    ("Enter", "show the job, and follow its log; show the jobs of the queue"),
    ("l", "list the jobs of all queues, by state"),
    ("o", "sort the queues: by name, queued, held, wait"),
    ("s", "stop the job, after a question"),
    ("r", "retry the job"),
    ("p", "pause the queue, after a question, or resume it"),
    ("d", "drain or resume the actor"),
    ("/", "show only rows with a text; in a list of jobs, search all; Esc shows all"),
    ("?", "show these keys"),
    ("Esc", "go back"),
    ("q", "quit"),
];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenView {
    #[default]
    Lists,
    Jobs,
    Job,
    Keys,
}

#[derive(Default)]
pub(super) struct Screen {
    pub(super) snapshot: Option<ScreenData>,
    /// Why the snapshot is old.
    pub(super) trouble: Option<String>,
    pub(super) view: ScreenView,
    /// The place of the focused list in [`Pane::ALL`].
    focus: usize,
    /// The selected row of each list: its place, and the name of what it shows.
    selected: [(usize, Option<String>); 5],
    /// The place of the order of the queues in [`ORDERS`].
    pub(super) order: usize,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    /// The list of jobs that is shown, or stands behind the job.
    pub(super) jobs: Option<JobsView>,
    pub(super) job: Option<JobView>,
    pub(super) told: Option<Result<String, String>>,
    /// The act that waits for the answer to its question.
    asked: Option<Act>,
    /// The rows that the focused list shows at once, as it was last drawn.
    pub(super) page: usize,
}

impl Screen {
    /// Takes a new snapshot. Selected rows stay selected wherever they are now.
    pub(super) fn show(&mut self, snapshot: ScreenData) {
        self.snapshot = Some(snapshot);
        self.trouble = None;
        self.select_again();
    }

    pub(super) fn show_job(&mut self, job: &Job) {
        if let Some(view) = self.job.as_mut().filter(|view| view.id == job.id) {
            view.show(job);
        }
    }

    /// Returns the jobs of the list that is shown.
    pub(super) fn jobs_wanted(&self) -> Option<&JobsWanted> {
        let is_shown = self.view == ScreenView::Jobs;
        self.jobs.as_ref().filter(|_| is_shown).map(|jobs| &jobs.wanted)
    }

    /// Takes the jobs of a list, unless another one is shown by now.
    pub(super) fn show_jobs(&mut self, wanted: &JobsWanted, found: Result<FoundJobs, String>) {
        let Some(view) = self.jobs.as_mut().filter(|view| view.wanted == *wanted) else { return };
        match found {
            Ok(found) => view.found = Some(found),
            Err(trouble) => self.told = Some(Err(trouble)),
        }
        self.select_again();
    }

    pub(super) fn show_log(&mut self, id: &JobId, lines: Vec<LogLine>, unfinished: &str) {
        if let Some(view) = self.job.as_mut().filter(|view| view.id == *id) {
            view.add(lines, unfinished);
        }
    }

    pub(super) fn focus(&self) -> Pane {
        if self.jobs.is_some() { Pane::Jobs } else { Pane::ALL[self.focus] }
    }

    /// The rows of a list, and the place of the selected one.
    pub(super) fn rows(&self, pane: Pane) -> (Vec<ListRow>, usize) {
        let rows = match (&self.snapshot, &self.jobs) {
            (Some(snapshot), Some(jobs)) if pane == Pane::Jobs => jobs.rows(snapshot.snapshot.at),
            (Some(snapshot), _) => pane.rows(snapshot, self.order, &self.filter),
            (None, _) => Vec::new(),
        };
        let place = self.selected[pane as usize].0.min(rows.len().saturating_sub(1));
        (rows, place)
    }

    /// Does what a key asks for, or returns the act that does. An act with a question waits for its answer.
    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Act> {
        self.told = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return matches!(key.code, KeyCode::Char('c')).then_some(Act::Quit);
        }
        if let Some(act) = self.asked.take() {
            return (key.code == KeyCode::Char('y')).then_some(act);
        }
        let act = self.act_of(key)?;
        let Some(question) = act.question() else { return Some(act) };
        (self.told, self.asked) = (Some(Ok(question)), Some(act));
        None
    }

    fn act_of(&mut self, key: KeyEvent) -> Option<Act> {
        if self.is_typing {
            return self.type_filter(key.code);
        }
        match (self.view, key.code) {
            (_, KeyCode::Char('q')) => Some(Act::Quit),
            (ScreenView::Keys, _) => {
                self.go_below();
                None
            }
            (_, KeyCode::Char('?')) => {
                self.view = ScreenView::Keys;
                None
            }
            (ScreenView::Job, code) => self.press_in_job(code),
            (ScreenView::Jobs, code) => self.press_in_jobs(code),
            (ScreenView::Lists, code) => self.press_in_lists(code),
        }
    }

    /// Shows what stands behind the keys or the closed job.
    fn go_below(&mut self) {
        self.view = match (&self.job, &self.jobs) {
            (Some(_), _) => ScreenView::Job,
            (None, Some(_)) => ScreenView::Jobs,
            (None, None) => ScreenView::Lists,
        };
    }

    pub(super) fn typed(&self) -> &str {
        self.jobs.as_ref().map_or(&self.filter, |jobs| &jobs.typed)
    }

    /// Rows of the lists are left out at once; jobs are searched when the text is whole.
    fn type_filter(&mut self, code: KeyCode) -> Option<Act> {
        let text = self.jobs.as_mut().map_or(&mut self.filter, |jobs| &mut jobs.typed);
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                text.clear();
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(typed) => text.push(typed),
            _ => {}
        }
        if let Some(jobs) = self.jobs.as_mut().filter(|_| !self.is_typing) {
            jobs.search();
            return self.list();
        }
        self.select_again();
        None
    }

    /// Selects the first row, and returns the act that reads the list of jobs.
    fn list(&mut self) -> Option<Act> {
        self.selected[Pane::Jobs as usize] = (0, None);
        self.jobs.as_ref().map(|jobs| Act::List(jobs.wanted.clone()))
    }

    fn open_jobs(&mut self, queue: Option<Queue>) -> Option<Act> {
        self.jobs = Some(JobsView::new(queue));
        self.view = ScreenView::Jobs;
        self.list()
    }

    fn open_job(&mut self) -> Option<Act> {
        let id = self.selected_job()?;
        self.job = Some(JobView::new(id.clone()));
        self.view = ScreenView::Job;
        Some(Act::Open(id))
    }

    fn press_in_job(&mut self, code: KeyCode) -> Option<Act> {
        let step = self.step(code);
        let view = self.job.as_mut()?;
        match code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace => {
                self.job = None;
                self.go_below();
                return Some(Act::Close);
            }
            KeyCode::Char('s') => return Some(Act::Stop(view.id.clone())),
            KeyCode::Char('r') => return Some(Act::Retry(view.id.clone())),
            _ => view.scroll(step.unwrap_or_default()),
        }
        None
    }

    fn press_in_jobs(&mut self, code: KeyCode) -> Option<Act> {
        let jobs = self.jobs.as_mut()?;
        match code {
            KeyCode::Tab | KeyCode::Right => jobs.turn(false),
            KeyCode::BackTab | KeyCode::Left => jobs.turn(true),
            KeyCode::Esc | KeyCode::Backspace if jobs.typed.is_empty() => {
                self.jobs = None;
                self.go_below();
                return None;
            }
            KeyCode::Esc => {
                jobs.typed.clear();
                jobs.search();
            }
            code => return self.press_in_list(code),
        }
        self.list()
    }

    fn press_in_lists(&mut self, code: KeyCode) -> Option<Act> {
        match code {
            KeyCode::Tab | KeyCode::Right => self.focus = (self.focus + 1) % 4,
            KeyCode::BackTab | KeyCode::Left => self.focus = (self.focus + 3) % 4,
            KeyCode::Esc => {
                self.filter.clear();
                self.select_again();
            }
            KeyCode::Enter if self.focus() == Pane::Queues => {
                let queue = self.selected_queue()?.queue.clone();
                return self.open_jobs(Some(queue));
            }
            KeyCode::Char('l') => return self.open_jobs(None),
            KeyCode::Char('o') => {
                self.order = (self.order + 1) % ORDERS.len();
                self.select_again();
            }
            KeyCode::Char('p') => return self.pause(),
            KeyCode::Char('d') => return self.drain(),
            code => return self.press_in_list(code),
        }
        None
    }

    fn press_in_list(&mut self, code: KeyCode) -> Option<Act> {
        match code {
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Enter => return self.open_job(),
            KeyCode::Char('s') => return self.selected_job().map(Act::Stop),
            KeyCode::Char('r') => return self.selected_job().map(Act::Retry),
            code => self.step(code).into_iter().for_each(|step| self.move_by(step)),
        }
        None
    }

    /// Returns how many rows or lines a key goes down.
    fn step(&self, code: KeyCode) -> Option<isize> {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        match code {
            KeyCode::Up | KeyCode::Char('k') => Some(-1),
            KeyCode::Down | KeyCode::Char('j') => Some(1),
            KeyCode::PageUp => Some(-page),
            KeyCode::PageDown => Some(page),
            KeyCode::Home => Some(isize::MIN),
            KeyCode::End => Some(isize::MAX),
            _ => None,
        }
    }

    fn move_by(&mut self, step: isize) {
        let pane = self.focus();
        let (rows, place) = self.rows(pane);
        let place = place.saturating_add_signed(step).min(rows.len().saturating_sub(1));
        self.selected[pane as usize] = (place, rows.get(place).map(|row| row.key.clone()));
    }

    /// Finds the selected rows after the lists have changed. If one is gone, the place stays.
    fn select_again(&mut self) {
        for pane in Pane::ALL.into_iter().chain([Pane::Jobs]) {
            let (rows, place) = self.rows(pane);
            let (_, key) = &self.selected[pane as usize];
            let moved = key.as_ref().and_then(|key| rows.iter().position(|row| row.key == *key));
            let place = moved.unwrap_or(place);
            // The first row is no choice of the person: new rows may come above it.
            let is_chosen = key.is_some() && place > 0 || moved.is_some();
            let key = rows.get(place).filter(|_| is_chosen).map(|row| row.key.clone());
            self.selected[pane as usize] = (place, key);
        }
    }

    fn selected_key(&self) -> Option<String> {
        let (rows, place) = self.rows(self.focus());
        rows.get(place).map(|row| row.key.clone())
    }

    fn selected_job(&self) -> Option<JobId> {
        let is_list_of_jobs = !matches!(self.focus(), Pane::Queues | Pane::Actors);
        self.selected_key().filter(|_| is_list_of_jobs)?.parse().ok()
    }

    fn selected_queue(&self) -> Option<&QueueState> {
        let key = self.selected_key().filter(|_| self.focus() == Pane::Queues)?;
        let queues = &self.snapshot.as_ref()?.snapshot.queues;
        let found = queues.iter().find(|(state, _)| state.queue.to_string() == key);
        found.map(|(state, _)| state)
    }

    fn pause(&self) -> Option<Act> {
        let state = self.selected_queue()?;
        let queue = state.queue.clone();
        Some(if state.paused { Act::Resume(queue) } else { Act::Pause(queue) })
    }

    fn drain(&self) -> Option<Act> {
        let key = self.selected_key().filter(|_| self.focus() == Pane::Actors)?;
        let mut actors = self.snapshot.as_ref()?.snapshot.actors.iter();
        let of = actors.find(|of| of.actor.to_string() == key)?;
        let actor = of.actor.clone();
        match of.presence.state {
            ActorState::Ready => Some(Act::Drain(actor)),
            ActorState::Draining => Some(Act::Undrain(actor)),
            ActorState::Foreign => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::screen_data::tests::{job, screen_data};
    use super::*;
    use crate::proto::job::JobStatus;

    fn screen() -> Screen {
        let mut screen = Screen::default();
        screen.show(screen_data());
        screen
    }

    fn press(screen: &mut Screen, code: KeyCode) -> Option<Act> {
        screen.press(KeyEvent::from(code))
    }

    fn id(text: &str) -> JobId {
        text.parse().expect("legal")
    }

    #[test]
    fn selected_row_stays_selected_when_rows_come_above_it() {
        let mut screen = screen();
        press(&mut screen, KeyCode::BackTab);
        press(&mut screen, KeyCode::Down);
        let mut newer = screen_data();
        newer.latest.failed.insert(0, job("newest", JobStatus::Error, &[]));
        screen.show(newer);
        assert_eq!(press(&mut screen, KeyCode::Char('r')), Some(Act::Retry(id("early"))));
    }

    #[test]
    fn job_is_opened_stopped_and_closed_by_keys() {
        let mut screen = screen();
        press(&mut screen, KeyCode::Tab);
        press(&mut screen, KeyCode::Tab);
        let running = id("7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7");
        assert_eq!(press(&mut screen, KeyCode::Enter), Some(Act::Open(running.clone())));
        for (answer, act) in [('n', None), ('y', Some(Act::Stop(running)))] {
            assert_eq!(press(&mut screen, KeyCode::Char('s')), None);
            let question = screen.told.clone().expect("it asks").expect("no trouble");
            assert!(question.starts_with("stop job 7f9c2ba4-"), "{question}");
            assert_eq!(press(&mut screen, KeyCode::Char(answer)), act);
        }
        assert_eq!(press(&mut screen, KeyCode::Esc), Some(Act::Close));
        assert_eq!(screen.view, ScreenView::Lists);
    }

    #[test]
    fn jobs_of_a_queue_are_listed_by_state_and_searched() {
        let mut screen = screen();
        let Some(Act::List(waiting)) = press(&mut screen, KeyCode::Enter) else {
            panic!("the jobs of the queue are asked for");
        };
        assert_eq!(waiting.queue, "type:osis".parse().ok());
        let one = job("one", JobStatus::Dispatched, &[]);
        let found = FoundJobs { items: vec![one], next: None, searched: 1, complete: true };
        screen.show_jobs(&waiting, Ok(found.clone()));
        assert_eq!(press(&mut screen, KeyCode::Enter), Some(Act::Open(id("one"))));
        assert_eq!(press(&mut screen, KeyCode::Esc), Some(Act::Close));
        assert_eq!(screen.view, ScreenView::Jobs, "the list is behind the job");
        assert_eq!(press(&mut screen, KeyCode::Char('s')), None);
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Some(Act::Stop(id("one"))));

        let Some(Act::List(running)) = press(&mut screen, KeyCode::Right) else {
            panic!("another state is asked for");
        };
        screen.show_jobs(&waiting, Ok(found));
        assert!(screen.rows(Pane::Jobs).0.is_empty(), "jobs of another state are not shown");
        for code in ['/', 'q', 'x'].map(KeyCode::Char) {
            assert_eq!(press(&mut screen, code), None, "nothing is asked while text is typed");
        }
        let Some(Act::List(searched)) = press(&mut screen, KeyCode::Enter) else {
            panic!("the text is searched");
        };
        assert_eq!((searched.text.as_str(), searched.queue), ("qx", running.queue.clone()));
        assert_eq!(press(&mut screen, KeyCode::Esc), Some(Act::List(running)));
        assert_eq!(press(&mut screen, KeyCode::Esc), None);
        assert_eq!(screen.view, ScreenView::Lists);
        press(&mut screen, KeyCode::Char('l'));
        assert!(screen.jobs_wanted().is_some_and(|wanted| wanted.queue.is_none()));
    }

    #[test]
    fn queue_is_paused_and_a_paused_one_resumed() {
        let mut screen = screen();
        let queue: Queue = "type:osis".parse().expect("legal");
        assert_eq!(press(&mut screen, KeyCode::Char('p')), None);
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Some(Act::Pause(queue.clone())));
        let mut paused = screen_data();
        paused.snapshot.queues[0].0.paused = true;
        screen.show(paused);
        assert_eq!(press(&mut screen, KeyCode::Char('p')), Some(Act::Resume(queue)));
    }

    #[test]
    fn keys_are_text_while_the_filter_is_typed() {
        let mut screen = screen();
        press(&mut screen, KeyCode::BackTab);
        for code in ['/', 'q', 'x'].map(KeyCode::Char) {
            assert_eq!(press(&mut screen, code), None);
        }
        assert_eq!(screen.filter, "qx");
        assert!(screen.rows(Pane::Failures).0.is_empty());
        press(&mut screen, KeyCode::Esc);
        assert_eq!(screen.rows(Pane::Failures).0.len(), 2);
    }
}
