-- Marks jobs whose id a script leaves in a list, or in the hands of a foreign actor that popped
-- it: the field `leftover`. Such an id, found after the end of its job, is no push of a program that asks for
-- another run.
-- needs: time

-- A foreign actor starts or puts back a popped job within this time.
local LEFTOVER_US = 3600000000

local function is_leftover(mark, at)
  return mark == 'always' or (tonumber(mark or '') or 0) > at
end

-- Marks a job, for as long as its id may come back: for an hour, or for good if its list is not searched.
local function mark_leftover(id, at, within_us)
  local mark = redis.pcall('HGET', JOB .. id, 'leftover')
  if type(mark) == 'table' or mark and within_us and is_leftover(mark, at + within_us) then return end
  -- A job that is gone must not come back as a hash of one field.
  if redis.call('EXISTS', JOB .. id) == 0 then return end
  redis.pcall('HSET', JOB .. id, 'leftover', within_us and integer(at + within_us) or 'always')
end
