-- Renew a lease. ARGV: runner, milliseconds, what is shown of it, and whether it is new. Returns how many leases are
-- over; -1 if this one is.
-- KEYS[1] is the prefix of all keys of the project.
local at = redis.call('TIME')
local now = at[1] * 1000 + math.floor(at[2] / 1000) -- of Redis: the clocks of the machines do not matter
local p, runner, is_new = KEYS[1], ARGV[1], ARGV[4] == '1'
local until_ms = redis.call('ZSCORE', p .. 'leases', runner)
if not is_new and (not until_ms or tonumber(until_ms) <= now) then return -1 end
redis.call('ZADD', p .. 'leases', now + ARGV[2], runner)
redis.call('HSET', p .. 'members', runner, ARGV[3])
return redis.call('ZCOUNT', p .. 'leases', '-inf', now)
