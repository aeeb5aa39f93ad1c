-- The queue of a job, and the parts of a queue's name.
-- needs: names

-- The queue of these parts: its expression, by the digest, else instance, else group, else type. Nil if they are illegal.
local function queue_of_parts(script_type, group, instance, priority, digest)
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
  if digest and (group or instance or #digest ~= 40) then return nil end
  local queue = 'type:' .. script_type
  if digest then
    queue = queue .. ':where:' .. digest
  elseif instance then
    queue = queue .. ':group:' .. (group or 'default') .. ':inst:' .. instance
  elseif group then
    queue = queue .. ':group:' .. group
  end
  if priority and priority ~= '1' then queue = queue .. ':prio:' .. priority end
  return queue
end

-- The queue that a job's fields name. Nil if they are illegal.
local function queue_of(script_type, group, instance, priority, where)
  where = present(where)
  return queue_of_parts(script_type, group, instance, priority, where and redis.sha1hex(where))
end

-- The queue of a work list, which may have the suffix of priority 1.
local function queue_of_list(list)
  local last = string.sub(list, -7) == ':prio:1' and -8 or -1
  return string.sub(list, #WORK + 1, last)
end

local function type_of_queue(queue)
  return string.match(queue, '^type:([a-z0-9_]+)')
end

-- The parts of a queue's name, beside its type; those that it does not have are nil.
local function parts_of_queue(queue)
  return { group = string.match(queue, ':group:([^:]+)'), instance = string.match(queue, ':inst:(%d+)'),
    digest = string.match(queue, ':where:([0-9a-f]+)'), priority = string.match(queue, ':prio:(%d)') }
end

-- Returns whether a queue is of an expression.
local function is_where_queue(queue)
  return string.find(queue, ':where:', 1, true) ~= nil
end
