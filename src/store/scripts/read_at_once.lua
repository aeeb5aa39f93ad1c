-- Runs commands that read, in one step. Unlike a transaction, it is permitted while the memory of Redis is full.
--
-- ARGV: for each command the number of its words, then the words
-- returns a list: the answer of each command
-- needs: wrong_type

local answers, place = {}, 1
while place <= #ARGV do
  local last = place + tonumber(ARGV[place])
  answers[#answers + 1] = redis.call(unpack(ARGV, place + 1, last))
  place = last + 1
end
return answers
