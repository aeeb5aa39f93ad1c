-- Gives a call to a session that runs and serves no other one, and tells its actor.
--
-- ARGV: 1 id  2 the call as JSON  3 message for the actor  4 the most calls of a session, '' for a call that ends it
--       5 the rights of the caller
-- returns two strings: 'given'; 'missing' if there is none that the caller may change; 'none' if the job is no session; 'state' and its state if it does not
--         run; 'busy' if it serves a call; 'many' if it had all its calls; 'unowned' if its hash names no actor
-- needs: wrong_type caller time names routing job control

local id, most = ARGV[1], tonumber(ARGV[4])
local f = read(id, 'status', 'session', 'session_calls', 'session_call', 'actor', 'stop_requested')
if not f[1] or not caller_may('change', id) then return { 'missing', '' } end
if not f[2] then return { 'none', '' } end
if f[1] ~= 'started' then return { 'state', f[1] } end
if present(f[6]) then return { 'state', 'stopping' } end
if f[4] then return { 'busy', '' } end
local calls = tonumber(f[3]) or 0
if most and calls >= most then return { 'many', '' } end
local script_type, group, instance = string.match(f[5] or '', '^([^:]+):([^:]+):([^:]+)$')
local queue = queue_of(script_type, group, instance)
if not queue then return { 'unowned', '' } end
redis.call('HSET', JOB .. id, 'session_call', ARGV[2], 'session_calls', integer(most and calls + 1 or calls))
tell_actor(CONTROL .. string.sub(queue, #'type:' + 1), { ARGV[3] })
return { 'given', '' }
