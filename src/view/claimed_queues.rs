//! The jobs that wait for machines: the queues with jobs, and the machines whose actors claim from each.

use std::collections::{BTreeMap, BTreeSet};

use super::Snapshot;
use super::snapshot::{Claims, claiming_labels};
use crate::proto::labels::{Labels, label};
use crate::store::{QueueState, SeenActor};

/// A queue with waiting jobs, and the machines whose actors claim from it.
#[derive(Debug, Clone)]
pub struct ClaimedQueue<'a> {
    pub state: &'a QueueState,
    /// The names of the machines with a live actor that claims from it; without one, of the absent machines that had such an
    /// actor. Actors without a machine are on the machine with the empty name.
    pub machines: BTreeSet<&'a str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineWaits {
    /// Jobs that no other machine claims.
    pub alone: u64,
    /// Jobs that other machines claim as well.
    pub shared: u64,
}

fn machine(labels: &Labels) -> &str {
    label(labels, "machine").map_or("", |machine| machine.as_str())
}

impl Snapshot {
    /// Returns the queues that have waiting jobs, with the machines that claim them. `seen` are the actors that machines
    /// had, also while these are absent.
    pub fn claimed_queues<'a>(&'a self, seen: &'a [SeenActor]) -> Vec<ClaimedQueue<'a>> {
        let live = self.actors.iter();
        let live = Claims::of(
            live.map(|of| (&of.actor, claiming_labels(of), machine(&of.presence.labels))),
        );
        let seen =
            Claims::of(seen.iter().map(|of| (&of.actor, Some(&of.labels), machine(&of.labels))));
        let waiting = self.queues.iter().map(|(state, _)| state).filter(|state| state.depth > 0);
        let claimed = waiting.map(|state| {
            let machines = Some(live.of_queue(state)).filter(|machines| !machines.is_empty());
            let machines = machines.unwrap_or_else(|| seen.of_queue(state));
            ClaimedQueue { state, machines: machines.into_iter().collect() }
        });
        claimed.collect()
    }
}

impl MachineWaits {
    /// Returns the jobs that wait for each machine, by its name.
    pub fn of_machines<'a>(queues: &[ClaimedQueue<'a>]) -> BTreeMap<&'a str, Self> {
        let mut waits: BTreeMap<&str, Self> = BTreeMap::new();
        for ClaimedQueue { state, machines } in queues {
            for machine in machines {
                let of = waits.entry(machine).or_default();
                let number = if machines.len() == 1 { &mut of.alone } else { &mut of.shared };
                *number += state.depth;
            }
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::{healthy_snapshot, presence};
    use super::*;
    use crate::proto::message::ActorState;
    use crate::proto::selector::Selector;

    fn labels(machine: &str) -> Labels {
        let json = serde_json::json!({ "machine": machine, "role": "web" });
        serde_json::from_value(json).expect("legal")
    }

    #[test]
    fn job_waits_for_each_machine_that_claims_it_and_for_an_absent_one_if_no_other_does() {
        let on = |unit, machine| {
            let mut of = presence(unit, ActorState::Ready);
            of.presence.labels = labels(machine);
            of
        };
        let absent = SeenActor {
            actor: "osis:default:3".parse().expect("legal"),
            labels: labels("m3"),
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        let mut snapshot = healthy_snapshot();
        snapshot.actors = vec![on("osis-default-1", "m1"), on("osis-default-2", "m2")];
        let queue = |name: &str, selector: Option<&str>, depth| {
            let (mut state, actors) = snapshot.queues[0].clone();
            state.queue = name.parse().expect("legal");
            (state.depth, state.selector) = (depth, selector.map(str::to_owned));
            (state, actors)
        };
        let of = |text: &str| {
            let selector: Selector = text.parse().expect("an expression");
            format!("type:osis:where:{}", selector.digest())
        };
        let (only, gone) = ("machine = \"m1\"", "machine = \"m3\"");
        let queues = vec![
            queue("type:osis", None, 3),
            queue("type:osis:group:default:inst:2", None, 5),
            queue(&of(only), Some(only), 7),
            queue(&of(gone), Some(gone), 11),
            queue("type:python", None, 13),
            queue("type:osis:prio:0", None, 0),
        ];
        snapshot.queues = queues;
        let seen = [absent];
        let waits = MachineWaits::of_machines(&snapshot.claimed_queues(&seen));
        let of = |alone, shared| MachineWaits { alone, shared };
        assert_eq!(
            waits.into_iter().collect::<Vec<_>>(),
            [("m1", of(7, 3)), ("m2", of(5, 3)), ("m3", of(11, 0))]
        );
        let mut foreign = on("osis-default-3", "m3");
        foreign.presence.boot_id = None;
        snapshot.actors = vec![foreign];
        let claimed = snapshot.claimed_queues(&[]);
        let of_expression = claimed.iter().find(|of| of.state.depth == 11).expect("a queue");
        assert!(of_expression.machines.is_empty(), "another program reads no expression");
    }
}
