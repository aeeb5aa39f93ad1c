//! The faults: what may strike, how often, and how it is healed.

use std::time::Duration;

use fastrand::Rng;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL to an actor whose successor starts at once.
    KillActor,
    /// SIGKILL to an actor that stays away for longer than its lease.
    KillActorForLong,
    KillSupervisor,
    /// SIGKILL to Redis, which then starts on its append-only file.
    KillRedis,
    /// SIGSTOP to an actor for longer than its lease.
    PauseActor,
    PauseSupervisor,
    CutConnections,
    CloseHalf,
    Delay,
    /// Nothing passes for a while, and then everything.
    Hold,
    Swallow,
    Refuse,
    /// CLIENT KILL for every connection there is.
    DropClients,
    FlushScripts,
    /// The clock of Redis is set, forward or back, by more than the lease.
    SetClock,
    /// A job is told to stop.
    StopJob,
    /// A foreign actor waits for a job, pops it within its push, and dies.
    ForeignPop,
    /// The disk under the folders of jobs is full.
    FullDisk,
}

/// Each fault, how often it strikes among a hundred, and its name in the table.
pub(crate) const FAULTS: [(Fault, u8, &str); 18] = [
    (Fault::KillActor, 42, "kill -9 an actor"),
    (Fault::KillActorForLong, 3, "kill -9 an actor, away past its lease"),
    (Fault::KillSupervisor, 15, "kill -9 a supervisor"),
    (Fault::KillRedis, 6, "kill -9 redis, restarted on its AOF"),
    (Fault::PauseActor, 3, "SIGSTOP an actor past its lease"),
    (Fault::PauseSupervisor, 2, "SIGSTOP a supervisor"),
    (Fault::CutConnections, 9, "cut all connections of a process"),
    (Fault::CloseHalf, 5, "close one direction of them"),
    (Fault::Delay, 3, "delay what they carry"),
    (Fault::Hold, 3, "hold it back, deliver it late"),
    (Fault::Swallow, 3, "swallow it, then cut"),
    (Fault::Refuse, 3, "refuse connections"),
    (Fault::DropClients, 2, "CLIENT KILL every connection"),
    (Fault::FlushScripts, 1, "SCRIPT FLUSH"),
    (Fault::SetClock, 4, "set the clock of redis, forward or back"),
    (Fault::StopJob, 12, "stop a job"),
    (Fault::ForeignPop, 8, "a waiting foreign actor pops, and dies"),
    (Fault::FullDisk, 4, "fill the disk of the folders of jobs"),
];

impl Fault {
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let total: u8 = FAULTS.iter().map(|(_, weight, _)| weight).sum();
        let mut dice = rng.u8(..total);
        for (fault, weight, _) in FAULTS {
            if dice < weight {
                return fault;
            }
            dice -= weight;
        }
        Self::KillActor
    }

    pub(crate) fn is_kill(self) -> bool {
        matches!(
            self,
            Self::KillActor | Self::KillActorForLong | Self::KillSupervisor | Self::KillRedis
        )
    }

    /// Returns the time before the fault is healed. `lease` is the lease of the actors.
    pub(crate) fn lasts(self, lease: Duration, rng: &mut Rng) -> Duration {
        let millis = |from, to, rng: &mut Rng| Duration::from_millis(rng.u64(from..to));
        match self {
            Self::KillActorForLong => lease + Duration::from_secs(3),
            Self::PauseActor => lease + millis(500, 2000, rng),
            Self::PauseSupervisor => millis(500, 4000, rng),
            Self::FullDisk => millis(300, 4000, rng),
            Self::KillSupervisor => millis(0, 1000, rng),
            Self::KillRedis => millis(0, 300, rng),
            Self::Hold => millis(500, 7000, rng),
            Self::Delay | Self::Swallow | Self::Refuse => millis(200, 1500, rng),
            _ => Duration::ZERO,
        }
    }
}
