-- Store a record unless it has changed since `version`. ARGV: id, version, writer, when it expires ("" if it has not
-- ended), the limits of unfinished tasks by owner and in all, and then fields and values. Returns 0 if it has changed,
-- -1 and -2 beyond the limits. Who waits for the task, and who runs it, hears of it.
-- KEYS[1] is the prefix of all keys of the project.
local p, id, version, writer, expires = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local key = p .. 't:' .. id
local old = redis.call('HMGET', key, 'v', 'runner')
if (old[1] or '0') ~= version then return 0 end
redis.call('HSET', key, 'v', version + 1, unpack(ARGV, 7))
local new = redis.call('HMGET', key, 'runner', 'owner', 'home', 'queue', 'seq')
local runner, owner, home, queue, seq = unpack(new)
if version == '0' then
  local most = redis.call('HGET', p .. 'unfinished', owner) or 0
  local refused = tonumber(most) >= tonumber(ARGV[5]) and -1
  refused = refused or redis.call('ZCARD', p .. 'open') >= tonumber(ARGV[6]) and -2
  if refused then redis.call('DEL', key); return refused end
  seq = redis.call('INCR', p .. 'seq')
  redis.call('HSET', key, 'seq', seq)
  for _, set in ipairs({'open', 'all', 'o:' .. owner}) do redis.call('ZADD', p .. set, seq, id) end
  redis.call('HINCRBY', p .. 'unfinished', owner, 1)
end
local has_ended, waits = expires ~= '', runner == 'none' and queue ~= ''
if old[2] and (old[2] ~= runner or has_ended) then redis.call('SREM', p .. 'run:' .. old[2], id) end
if queue ~= '' and (has_ended or not waits) then redis.call('ZREM', p .. 'q:' .. queue, id) end
if has_ended then
  if redis.call('ZREM', p .. 'open', id) == 1 and redis.call('HINCRBY', p .. 'unfinished', owner, -1) < 1 then
    redis.call('HDEL', p .. 'unfinished', owner)
  end
  redis.call('ZADD', p .. 'ends', expires, id)
  redis.call('PEXPIREAT', key, expires + 86400000)
elseif waits then
  redis.call('SADD', p .. 'queues', queue)
  redis.call('ZADD', p .. 'q:' .. queue, seq, id)
else
  redis.call('SADD', p .. 'run:' .. runner, id)
end
for _, reader in ipairs({home, runner ~= home and runner ~= writer and runner or 'none'}) do
  if reader ~= 'none' then
    redis.call('XADD', p .. 'in:' .. reader, 'MAXLEN', '~', 10000, '*', 't', id)
    redis.call('EXPIRE', p .. 'in:' .. reader, 3600)
  end
end
return 1
