-- Checks names that a foreign program wrote into a hash before they become part of a key.

-- Prefixes of the ids of jobs made from tasks of rhailib, and from messages of RabbitMQ.
local TASK_JOB, AMQP_JOB = 'rhai-', 'amqp-'

local function legal_type(name)
  return name and #name <= 32 and string.match(name, '^[a-z][a-z0-9_]*$') and name
end

local function legal_id(id)
  return type(id) == 'string' and #id <= 64 and string.match(id, '^[a-z0-9A-Z_-]+$') and id
end

local function legal_limit(name)
  return type(name) == 'string' and #name <= 200 and string.match(name, '^[A-Za-z0-9_.@/=#-]+$')
    and name
end

local function present(value)
  return value and value ~= '' and value or nil
end

-- Reads an array or object as JSON; nil if another program wrote something else there.
local function json_table(text)
  local is_json, value = pcall(cjson.decode, present(text) or '')
  return is_json and type(value) == 'table' and value or nil
end

-- The words of older programs for a number or a list that is not given.
local ABSENT = { none = true, null = true, ['nil'] = true }

-- Tells if a flag of a job is off.
local function says_no(value)
  local word = value and string.lower(value)
  return word == '0' or word == 'false' or word == 'no'
end

-- The counter of a job that ended in `error` as a person or its submitter wanted; nil if it failed.
local function intended_end(text)
  if text == 'stopped' or text == 'stopped_by_request'
    or string.match(text or '', '^stopped after %d+ failures? of %a+ [A-Za-z0-9_-]+$') then
    return 'cancelled'
  end
  if text == 'replaced by another job' then return 'replaced' end
  return string.match(text or '', '^replaced by job [A-Za-z0-9_-]+$') and 'replaced'
end

-- The script type of a job in the indexes: its own, else its actor's.
local function type_of_job(script_type, actor)
  return legal_type(script_type) or legal_type(string.match(actor or '', '^[^:]+')) or 'unknown'
end
