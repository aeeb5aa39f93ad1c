"""Computes when lines of cron fire around each change of the clock of a year, by a plain loop over minutes.

The rule comes from Debian's cron. A line with a `*` in its minute or hour fires in each minute of the wall clock
that it names, also if that comes twice. Any other fires once for each local minute: not again when it comes a second
time, and soon after the clock has jumped over it. Reads {"zones": […], "lines": […], "year": N}, and prints one entry
for each zone, line and change: [zone, line, begin, end, [times]], in seconds of Unix time.
"""

import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

AROUND = 36 * 3600


def values(field, low, high):
    found = set()
    for part in field.split(","):
        part, _, step = part.partition("/")
        first, last = (low, high) if part == "*" else (part.split("-") * 2)[:2]
        found.update(range(int(first), int(last) + 1, int(step or 1)))
    return found


class Line:
    def __init__(self, text):
        minute, hour, day, month, weekday = text.split()
        self.repeats = "*" in minute or "*" in hour
        self.minutes, self.hours = values(minute, 0, 59), values(hour, 0, 23)
        self.days, self.months = values(day, 1, 31), values(month, 1, 12)
        self.weekdays = {number % 7 for number in values(weekday, 0, 7)}
        self.either = day != "*" and weekday != "*"

    def names(self, local):
        if local.minute not in self.minutes or local.hour not in self.hours or local.month not in self.months:
            return False
        of_month, of_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either else of_month and of_week


def changes(zone, year):
    at, end = (int(datetime(year + more, 1, 1, tzinfo=timezone.utc).timestamp()) for more in (0, 1))
    offset = lambda second: datetime.fromtimestamp(second, zone).utcoffset()
    return [second for second in range(at, end, 1800) if offset(second) != offset(second - 1800)]


def main():
    asked = json.load(sys.stdin)
    answers = []
    for name in asked["zones"]:
        zone = ZoneInfo(name)
        for change in changes(zone, asked["year"]):
            begin, end = change - AROUND, change + AROUND
            minutes = [(second, datetime.fromtimestamp(second, zone).replace(tzinfo=None))
                       for second in range(begin, end + 1, 60)]
            for text in asked["lines"]:
                line, times, latest = Line(text), [], minutes[0][1]
                for second, local in minutes[1:]:
                    passed = [local] if line.repeats else []
                    while not line.repeats and latest < local:
                        latest += timedelta(minutes=1)
                        passed.append(latest)
                    if any(line.names(minute) for minute in passed):
                        times.append(second)
                answers.append([name, text, begin, end, times])
    json.dump(answers, sys.stdout)


main()
