//! Subscriptions: what is followed, by whom, and from where on. All followers of one thing share one
//! reader of Redis; each has a place of its own, so a slow one costs no memory.

mod feed;
mod follower;
mod hub;
mod notice;
mod read;
mod topic;

pub(crate) use follower::{Follower, NextNotice};
pub(crate) use hub::FollowHub;
pub(crate) use notice::{EventsNotice, JobNotice, LoggedLine, StatsNotice};
pub(crate) use topic::{FollowTopic, Following, StreamPlace};
