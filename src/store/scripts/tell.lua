-- Tells a job an event. If it waits for that, it goes to its queue; else the event is kept for its next wait.
--
-- ARGV: 1 id  2 name of the event  3 the event as a JSON object, without its time
--       4... names of the person or program that tells it  last: the rights of the caller
-- returns two strings: 'told'; 'kept'; 'missing' if there is none that the caller may change; 'refused' and the state that forbids it; 'twice' if the job has
--         had this event and does not wait for it again, or keeps it already; 'forbidden' if the wait is for others;
--         'missed' if its last wait for this event has ended by its time;
--         'full' if it keeps too many; 'illegal' if its fields name no queue
-- needs: wrong_type caller time names routing job index events queue waits

local id, name, at = ARGV[1], ARGV[2], now_us()
local EVENTS_MAX, EVENTS_BYTES_MAX, EVENT_BYTES_MAX = 16, 262144, 131072
local names = { unpack(ARGV, 4) }
local f = read(id, 'status', 'wait', 'told_events', 'event', 'script_type', 'group', 'instance', 'priority', 'where')
if not f[1] or not caller_may('change', id) then return { 'missing', '' } end
if f[1] == 'finished' or f[1] == 'error' then return { 'refused', f[1] } end
if #ARGV[3] > EVENT_BYTES_MAX then return { 'full', '' } end
local event = string.sub(ARGV[3], 1, -2) .. ',"when":"' .. rfc3339(at) .. '"}'

local wait = f[1] == 'scheduled' and json_table(f[2]) or nil
if wait and wait.event == name then
  local script_type = legal_type(f[5])
  local queue = queue_of(f[5], f[6], f[7], f[8], f[9])
  if not may_tell(wait, names) then return { 'forbidden', '' } end
  if not queue then return { 'illegal', '' } end
  wake_waiting(id, script_type, queue, event, at)
  return { 'told', '' }
end
local had = json_table(f[4])
if had and had.event == name then return { 'twice', '' } end
if had and had.missed == name then return { 'missed', '' } end
local told = json_table(f[3]) or {}
for _, other in ipairs(told) do
  if type(other) == 'table' and other.event == name then return { 'twice', '' } end
end
told[#told + 1] = { event = name, names = names, json = event }
local text = cjson.encode(told)
if #told > EVENTS_MAX or #text > EVENTS_BYTES_MAX then return { 'full', '' } end
redis.call('HSET', JOB .. id, 'told_events', text)
return { 'kept', '' }
