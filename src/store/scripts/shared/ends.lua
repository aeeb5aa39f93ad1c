-- How jobs ended, by their state and error.
-- needs: names

-- Returns the end of a job as its index names it: 'finished', 'failed', 'cancelled', 'replaced' or 'expired'.
local function end_of(status, text)
  local EXPIRED = 'expired: '
  if status == 'finished' then return 'finished' end
  return intended_end(text) or string.sub(text or '', 1, #EXPIRED) == EXPIRED and 'expired' or 'failed'
end
