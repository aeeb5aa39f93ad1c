//! Time zones by their names, and the one of the machine.

use jiff::tz::TimeZone;

pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name).map_err(|_| {
        "not a time zone of this machine: expected a name such as \"Europe/Brussels\" or \"UTC\", \
         of those in /usr/share/zoneinfo, which the package tzdata has"
            .to_owned()
    })
}

/// Returns the time zone of the person who calls: from `TZ`, else /etc/localtime, else UTC.
pub fn local_zone() -> TimeZone {
    let zone = TimeZone::system();
    if zone.is_unknown() { TimeZone::UTC } else { zone }
}
