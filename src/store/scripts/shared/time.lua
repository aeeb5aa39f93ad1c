-- Redis's clock, and times as text.

local now_us, not_ahead, integer, rfc3339, microseconds
do
  -- Never the same twice in one script, although it stands still there since Redis 7.2: what is queued
  -- later has a later score.
  do
    local last = 0
    function now_us()
      local time = redis.call('TIME')
      last = math.max(time[1] * 1000000 + time[2], last + 1)
      return last
    end
  end

  -- Returns a time that was noted by this clock, or now if it is later than that: the clock was set back since, and what
  -- waits for the mark must not wait for as long. A mark may be ahead for a moment, where another script wrote it.
  function not_ahead(mark, at)
    local SLACK_US = 1000000
    mark = tonumber(mark or '') or 0
    return mark > at + SLACK_US and at or mark
  end

  -- Lua writes a number this large in exponential form.
  function integer(number)
    return string.format('%d', number)
  end

  -- RFC 3339, UTC, milliseconds. The last result is kept: a script formats one time again and again.
  -- Integer division is done by subtracting the remainder, which needs no function call.
  local written_us, written
  function rfc3339(us)
    if us == written_us then return written end
    local of_second = us % 1000000
    local seconds = (us - of_second) / 1000000
    local of_day = seconds % 86400
    local shifted = (seconds - of_day) / 86400 + 719468
    local doe = shifted % 146097
    local yoe = doe - (doe - doe % 1460) / 1460 + (doe - doe % 36524) / 36524
      - (doe - doe % 146096) / 146096
    yoe = (yoe - yoe % 365) / 365
    local doy = doe - (365 * yoe + (yoe - yoe % 4) / 4 - (yoe - yoe % 100) / 100)
    local mp = 5 * doy + 2
    mp = (mp - mp % 153) / 153
    local before = 153 * mp + 2
    local day = doy - (before - before % 5) / 5 + 1
    local month = mp < 10 and mp + 3 or mp - 9
    local of_hour = of_day % 3600
    local year = yoe + (shifted - doe) / 146097 * 400 + (month <= 2 and 1 or 0)
    written_us = us
    written = string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
      (of_day - of_hour) / 3600, (of_hour - of_hour % 60) / 60, of_hour % 60,
      (of_second - of_second % 1000) / 1000)
    return written
  end

  -- Parses RFC 3339 to microseconds since the epoch, cut to milliseconds. 0 for anything else.
  function microseconds(text)
    local y, mo, d, h, mi, s, fraction, zone = string.match(text or '',
      '^(%d%d%d%d)-(%d%d)-(%d%d)[Tt](%d%d):(%d%d):(%d%d)(%.?%d*)([Zz+-][%d:]*)$')
    if not y then return 0 end
    local sign, offset_h, offset_mi = string.match(zone, '^([+-])(%d%d):?(%d%d)$')
    if not sign and string.upper(zone) ~= 'Z' then return 0 end
    local ms = string.sub(string.gsub(fraction, '%.', '') .. '000', 1, 3)
    y, mo, d = tonumber(y), tonumber(mo), tonumber(d)
    if mo <= 2 then y, mo = y - 1, mo + 12 end
    local days = 365 * y + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400)
      + math.floor((153 * (mo - 3) + 2) / 5) + d - 1 - 719468
    local ahead_s = sign and ((sign == '-' and -1 or 1) * (offset_h * 3600 + offset_mi * 60)) or 0
    return ((days * 86400 + h * 3600 + mi * 60 + s - ahead_s) * 1000 + ms) * 1000
  end
end
