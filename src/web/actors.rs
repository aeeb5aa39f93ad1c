//! Actors: the list by type and machine, and one actor; drain, resume, stop.
