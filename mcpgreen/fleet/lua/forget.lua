-- Forget a runner without tasks. ARGV: runner.
-- KEYS[1] is the prefix of all keys of the project.
local p, runner = KEYS[1], ARGV[1]
if redis.call('SCARD', p .. 'run:' .. runner) > 0 then return 0 end
redis.call('ZREM', p .. 'leases', runner)
redis.call('HDEL', p .. 'members', runner)
return 1
