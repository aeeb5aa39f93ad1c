-- Finds lists with entries that no script has put there: of the known queues, of live actors, of older programs.
--
-- ARGV: 1 limit on queues, and on actors
-- returns lists for `adopt`
-- needs: wrong_type routing legacy

local limit, found = tonumber(ARGV[1]), {}

-- The queues, and all spellings of their lists.
local queues, lists = {}, {}
local function add(queue)
  if not queue or queues[queue] then return end
  queues[queue] = true
  lists[#lists + 1] = WORK .. queue
  if not string.find(queue, ':prio:', 1, true) then lists[#lists + 1] = WORK .. queue .. ':prio:1' end
end
for _, queue in ipairs(redis.call('SRANDMEMBER', QUEUES, limit)) do add(queue) end
for _, actor in ipairs(redis.call('ZRANGE', ACTORS, 0, limit - 1)) do
  local script_type, group, instance = string.match(actor, '^([^:]+):([^:]+):([^:]+)$')
  for _, priority in ipairs(script_type and { '0', '1', '2' } or {}) do
    add(queue_of(script_type, nil, nil, priority))
    add(queue_of(script_type, group, nil, priority))
    add(queue_of(script_type, group, instance, priority))
  end
end
for _, queue in ipairs(LEGACY or {}) do lists[#lists + 1] = queue.list end

-- Most of the time none of them exists. Lua hands on no more than some thousand values at once.
local function look_at(first, last)
  if redis.call('EXISTS', unpack(lists, first, last)) == 0 then return end
  for place = first, last do
    local list = lists[place]
    local length = redis.pcall('LLEN', list)
    local queue = string.sub(list, 1, #WORK) == WORK and queue_of_list(list)
    local is_all = queue and WORK .. queue == list
    if type(length) == 'number' and length > (is_all and redis.call('ZCARD', READY .. queue) or 0) then
      found[#found + 1] = list
    end
  end
end
for first = 1, #lists, 1000 do look_at(first, math.min(first + 999, #lists)) end
return found
