-- Tells a prerequisite from a later job that has its id.
-- needs: names time

-- Tells if a job was created after the prerequisites of another were looked at; never if that is not known.
local function is_later_owner(created_at, looked_at)
  return present(looked_at) ~= nil and microseconds(created_at) > microseconds(looked_at)
end
