-- Periodic jobs.

-- The state of a periodic job expires when nobody has looked at it for more than a year.
local CRON_TTL_S = 400 * 86400
