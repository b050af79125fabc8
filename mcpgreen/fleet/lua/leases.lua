-- Leases by runner, as milliseconds that are left.
-- KEYS[1] is the prefix of all keys of the project.
local at = redis.call('TIME')
local now = at[1] * 1000 + math.floor(at[2] / 1000) -- of Redis: the clocks of the machines do not matter
local found = redis.call('ZRANGE', KEYS[1] .. 'leases', 0, -1, 'WITHSCORES')
for i = 2, #found, 2 do found[i] = found[i] - now end
return found
