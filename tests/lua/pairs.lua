-- pairs.lua - what this program does depends on the order of pairs, which Lua draws from addresses and the time: explored, it is the same in every run all the same.
local me = heddle.self()
local t = {}
for i = 1, 30 do t["key" .. i] = i; t[{}] = i end
local n = 0
for k, v in pairs(t) do
	n = n + 1
	if v % 3 == 0 then heddle.spawn(function() heddle.send(me, v) end) heddle.yield() elseif v % 3 == 1 then heddle.send(me, v) heddle.receive() end
end
