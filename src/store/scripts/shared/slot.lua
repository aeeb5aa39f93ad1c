-- Refuses to run on a node of a cluster that has not all keys of the namespace: on another one than
-- the owner of its slot, and on the owner while the slot is being moved. A script would end in its
-- middle there, at the first key that is missing. Goes before every script of a namespace in braces.
do
  local probed = redis.pcall('EXISTS', PROBE)
  local err = type(probed) == 'table' and probed.err or ''
  if string.find(err, 'non local key', 1, true) or string.find(err, 'cluster is down', 1, true) then
    return redis.error_reply('TRYAGAIN this node has not all keys of the slot of the namespace: '
      .. 'the slot is being moved, or the cluster is down')
  end
end
