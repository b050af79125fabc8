-- Take what has waited longest in these queues. ARGV: runner, then queues. Returns the fields of
-- a record, and how many wait behind it; false if nothing waits, or if
-- the runner has lost its lease.
-- KEYS[1] is the prefix of all keys of the project.
local at = redis.call('TIME')
local now = at[1] * 1000 + math.floor(at[2] / 1000) -- of Redis: the clocks of the machines do not matter
local p, runner = KEYS[1], ARGV[1]
if tonumber(redis.call('ZSCORE', p .. 'leases', runner) or 0) <= now then return false end
while true do
  local id, first, from
  for i = 2, #ARGV do
    local head = redis.call('ZRANGE', p .. 'q:' .. ARGV[i], 0, 0, 'WITHSCORES')
    if head[1] and (not first or tonumber(head[2]) < first) then
      id, first, from = head[1], tonumber(head[2]), ARGV[i]
    end
  end
  if not id then return false end
  redis.call('ZREM', p .. 'q:' .. from, id)
  local key = p .. 't:' .. id
  if redis.call('HGET', key, 'runner') == 'none' then
    redis.call('HINCRBY', key, 'v', 1)
    redis.call('HSET', key, 'runner', runner)
    redis.call('SADD', p .. 'run:' .. runner, id)
    local row = redis.call('HMGET', key, 'v', 'fields', 'runner', 'sealed_params', 'stderr_end', 'result')
    return {row, redis.call('ZCARD', p .. 'q:' .. from)}
  end
end
