-- ring.lua - a ring of 10,000 processes: a number goes around it, and each process adds 1.
local n = tonumber(arg[1]) or 10000

local function member(next_one)
	heddle.send(next_one, heddle.receive() + 1)
end

local first = heddle.self()
for _ = 1, n do
	first = assert(heddle.spawn(member, first))
end
heddle.send(first, 0)
print(heddle.receive() .. " processes")
