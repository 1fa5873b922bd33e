-- many.lua - a ring of many processes, through which a message goes around; then all of them at once.
local n, rounds = tonumber(arg[1]) or 10000, tonumber(arg[2]) or 3
local me = heddle.self()

local function member(to)
	while true do
		local m = heddle.receive()
		heddle.send(to, m)
		if m == "end" then
			return
		end
	end
end

local first = me
for i = 1, n do
	first = heddle.spawn(member, first)
end
assert(heddle.stats().live_processes > n)
for i = 1, rounds do
	heddle.send(first, i)
	assert(heddle.receive() == i)
end
for i = 1, 10 do
	heddle.send(first, i)
end
for i = 1, 10 do
	assert(heddle.receive() == i)
end
heddle.send(first, "end")
assert(heddle.receive() == "end")
print(n .. " processes are well")
