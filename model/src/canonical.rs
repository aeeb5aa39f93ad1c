//! Which states are the same: what no step can tell apart has one form and one hash.

use std::hash::{Hash, Hasher};

use crate::state::{Actor, Boot, BootId, Doing, Lease, State};

impl State {
    /// Forgets what no step can tell apart, so that equal states are one: scores keep their order
    /// alone, and boots without a trace go.
    pub fn tidy(&mut self) {
        let mut scores: Vec<u8> =
            self.ready.iter().chain(&self.held).map(|(score, _)| *score).collect();
        scores.extend(self.marks.iter().flatten());
        scores.sort_unstable();
        scores.dedup();
        let place = |score: u8| {
            let place = scores.iter().position(|other| *other == score).unwrap_or_default();
            u8::try_from(2 * place + 2).unwrap_or(u8::MAX)
        };
        for (score, _) in self.ready.iter_mut().chain(&mut self.held) {
            *score = place(*score);
        }
        self.marks = self.marks.map(|mark| mark.map(place));
        let jobs = &self.jobs;
        self.list.sort_by_key(|id| jobs[*id].is_selective);
        // First those of the actors, then the others; the order of these means nothing.
        let of_actors = self.actors.iter().filter(|actor| actor.doing != Doing::Down);
        let mut order: Vec<BootId> = of_actors.map(|actor| actor.boot).collect();
        let current = order.len();
        let is_left = |boot: &Boot| boot.lease != Lease::Gone || !boot.running.is_empty();
        let others = (0..self.boots.len()).filter(|name| is_left(&self.boots[*name]));
        let others: Vec<BootId> = others.filter(|name| !order.contains(name)).collect();
        order.extend(others);
        order[current..].sort_by(|one, other| self.boots[*one].cmp(&self.boots[*other]));
        let mut renamed = vec![None; self.boots.len()];
        for (place, name) in order.iter().enumerate() {
            renamed[*name] = Some(place);
        }
        self.boots = order.iter().map(|name| self.boots[*name].clone()).collect();
        for job in &mut self.jobs {
            job.boot = job.boot.and_then(|boot| renamed[boot]);
            job.owner = job.owner.and_then(|boot| renamed[boot]);
        }
        for actor in &mut self.actors {
            let is_down = actor.doing == Doing::Down;
            actor.boot = if is_down { 0 } else { renamed[actor.boot].unwrap_or(0) };
            actor.serves &= !is_down;
        }
    }

    /// The same with the names of the two actors exchanged.
    fn mirrored(&self) -> Self {
        let mut mirrored = self.clone();
        mirrored.actors.swap(0, 1);
        if self.actors.iter().all(|actor| actor.doing != Doing::Down) {
            let exchange = |boot: &mut BootId| *boot = if *boot < 2 { 1 - *boot } else { *boot };
            mirrored.boots.swap(0, 1);
            mirrored.actors.iter_mut().for_each(|actor| exchange(&mut actor.boot));
            for job in &mut mirrored.jobs {
                job.boot.iter_mut().for_each(exchange);
                job.owner.iter_mut().for_each(exchange);
            }
        }
        mirrored
    }

    /// Tells actors apart by what they are, not by their names.
    fn look_of(&self, actor: usize) -> (bool, bool, Doing, bool, Option<&Boot>) {
        let Actor { boot, doing, stopped, matches, serves } = self.actors[actor];
        (matches, serves, doing, stopped, self.boots.get(boot).filter(|_| doing != Doing::Down))
    }
}

/// The search knows a state by its hash. Two states that differ in the names of the actors alone have
/// the same.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        if self.look_of(0) > self.look_of(1) {
            return self.mirrored().hash(hasher);
        }
        let Self { jobs, list, ready, held, graph, has_expression, marks, boots, .. } = self;
        let Self { tokens, bell_hangs, bell_rang, popped, paused, actors, left, broken, .. } = self;
        (jobs, list, ready, held, graph, has_expression, marks, boots).hash(hasher);
        (tokens, bell_hangs, bell_rang, popped, paused, actors, left, broken).hash(hasher);
    }
}
