-- Files of jobs whose contents are in a folder, by their SHA-256: a field that begins with `a:` has hash and
-- size. A sorted set has HASH:ID for each, so that the folder's contents find their jobs.

-- Stores the fields and values that begin at this argument.
local function store_files(id, contents, first)
  for number = first, #ARGV, 2 do
    local field, value = ARGV[number], ARGV[number + 1]
    redis.call('HSET', FILES .. id, field, value)
    if string.sub(field, 1, 2) == 'a:' then
      redis.call('ZADD', contents, 0, string.sub(value, 1, 64) .. ':' .. id)
    end
  end
end
