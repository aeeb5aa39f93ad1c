-- The queue of a job, and the parts of a queue's name.
-- needs: names

-- The queue that a job's fields name: instance, else group, else type. Nil if they are illegal.
local function queue_of(script_type, group, instance, priority)
  script_type, group, instance, priority =
    legal_type(script_type), present(group), present(instance), present(priority)
  if not script_type then return nil end
  if instance and ABSENT[string.lower(instance)] then instance = nil end
  if priority and ABSENT[string.lower(priority)] then priority = nil end
  if group and not (#group <= 64 and string.match(group, '^[a-z0-9][a-z0-9_.-]*$')) then return nil end
  if instance and not (#instance <= 5 and string.match(instance, '^[1-9]%d*$')
      and tonumber(instance) <= 65535) then
    return nil
  end
  if priority and priority ~= '0' and priority ~= '1' and priority ~= '2' then return nil end
  local queue = 'type:' .. script_type
  if instance then
    queue = queue .. ':group:' .. (group or 'default') .. ':inst:' .. instance
  elseif group then
    queue = queue .. ':group:' .. group
  end
  if priority and priority ~= '1' then queue = queue .. ':prio:' .. priority end
  return queue
end

-- The queue of a work list, which may have the suffix of priority 1.
local function queue_of_list(list)
  local last = string.sub(list, -7) == ':prio:1' and -8 or -1
  return string.sub(list, #WORK + 1, last)
end

local function type_of_queue(queue)
  return string.match(queue, '^type:([a-z0-9_]+)')
end
