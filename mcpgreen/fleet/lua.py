"""What has to happen in Redis at once, as Lua. `KEYS[1]` is the prefix of all keys of a project; see `ledger` for them.

Rule: times are those of Redis, in milliseconds, so that the clocks of the machines do not matter.
"""

NOW = "local at = redis.call('TIME'); local now = at[1] * 1000 + math.floor(at[2] / 1000)\n"

# Store a record unless it has changed since `version`. ARGV: id, version, writer, when it expires ("" if it has not
# ended), the limits of unfinished tasks by owner and in all, and then fields and values. Returns 0 if it has changed,
# -1 and -2 beyond the limits. Who waits for the task, and who runs it, hears of it.
SAVE = """
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
"""

# Take what has waited longest in these queues. ARGV: runner, then queues. Returns an id; false if nothing waits, or if
# the runner has lost its lease.
CLAIM = (
    NOW
    + """
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
    return id
  end
end
"""
)

# Renew a lease. ARGV: runner, milliseconds, what is shown of it, and whether it is new. Returns how many leases are
# over; -1 if this one is.
BEAT = (
    NOW
    + """
local p, runner, is_new = KEYS[1], ARGV[1], ARGV[4] == '1'
local until_ms = redis.call('ZSCORE', p .. 'leases', runner)
if not is_new and (not until_ms or tonumber(until_ms) <= now) then return -1 end
redis.call('ZADD', p .. 'leases', now + ARGV[2], runner)
redis.call('HSET', p .. 'members', runner, ARGV[3])
return redis.call('ZCOUNT', p .. 'leases', '-inf', now)
"""
)

# Leases by runner, as milliseconds that are left.
LEASES = (
    NOW
    + """
local found = redis.call('ZRANGE', KEYS[1] .. 'leases', 0, -1, 'WITHSCORES')
for i = 2, #found, 2 do found[i] = found[i] - now end
return found
"""
)

# Forget a runner without tasks. ARGV: runner.
FORGET = """
local p, runner = KEYS[1], ARGV[1]
if redis.call('SCARD', p .. 'run:' .. runner) > 0 then return 0 end
redis.call('ZREM', p .. 'leases', runner)
redis.call('HDEL', p .. 'members', runner)
return 1
"""

# Remove records. ARGV: ids.
REMOVE = """
local p = KEYS[1]
for _, id in ipairs(ARGV) do
  local owner, attempt = unpack(redis.call('HMGET', p .. 't:' .. id, 'owner', 'attempt'))
  redis.call('DEL', p .. 't:' .. id, p .. 'r:' .. id .. ':' .. (attempt or 1))
  redis.call('ZREM', p .. 'ends', id)
  redis.call('ZREM', p .. 'all', id)
  if owner then redis.call('ZREM', p .. 'o:' .. owner, id) end
end
return #ARGV
"""

SCRIPTS = {"SAVE": SAVE, "CLAIM": CLAIM, "BEAT": BEAT, "LEASES": LEASES, "FORGET": FORGET, "REMOVE": REMOVE}
