-- The state of a periodic job expires when it has not been read for more than a year.
local CRON_TTL_S = 400 * 86400
