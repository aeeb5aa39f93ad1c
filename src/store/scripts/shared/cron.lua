-- The state of a periodic job expires when it has not been read for more than a year.
local CRON_TTL_S = 400 * 86400

-- Adds a firing to the history in the field `history`: a JSON array of the latest, the newest first.
local function remember(key, text, firing)
  local HISTORY_MAX, HISTORY_BYTES_MAX = 100, 131072
  local is_json, history = pcall(cjson.decode, text and #text <= HISTORY_BYTES_MAX and text or '')
  if not is_json or type(history) ~= 'table' then history = {} end
  table.insert(history, 1, firing)
  while #history > HISTORY_MAX do table.remove(history) end
  redis.call('HSET', key, 'history', cjson.encode(history))
end
