-- Remove records. ARGV: ids.
-- KEYS[1] is the prefix of all keys of the project.
local p = KEYS[1]
for _, id in ipairs(ARGV) do
  local owner, attempt = unpack(redis.call('HMGET', p .. 't:' .. id, 'owner', 'attempt'))
  redis.call('DEL', p .. 't:' .. id, p .. 'r:' .. id .. ':' .. (attempt or 1))
  redis.call('ZREM', p .. 'ends', id)
  redis.call('ZREM', p .. 'all', id)
  if owner then redis.call('ZREM', p .. 'o:' .. owner, id) end
end
return #ARGV
