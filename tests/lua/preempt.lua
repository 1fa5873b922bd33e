-- preempt.lua - a process that never waits stops no other, wherever it loops; and it can be killed there. Run it on one worker too.
local check = require "check"

local function forever()
	while true do
	end
end

local loops = {
	plain = forever,
	recursion = function()
		local function again()
			return again()
		end
		again()
	end,
	pcall = function()
		while true do
			pcall(forever)
		end
	end,
	coroutine = function()
		coroutine.wrap(function()
			coroutine.wrap(forever)()
		end)()
	end,
	metamethod = function()
		local t = setmetatable({}, { __index = forever, __add = forever })
		return t.x
	end,
	iterator = function()
		for _ in forever do
		end
	end,
	sort = function()
		table.sort({ 3, 2, 1 }, function()
			forever()
		end)
	end,
	gsub = function()
		return (("x"):gsub(".", forever))
	end,
	tostring = function()
		return tostring(setmetatable({}, { __tostring = forever }))
	end,
	coroutine_in_sort = function()
		table.sort({ 3, 2, 1 }, function()
			coroutine.wrap(forever)()
		end)
	end,
	pattern = function()
		heddle.send(heddle.self(), 1)
		heddle.receive(forever)
	end,
	messages = function()
		while true do
			heddle.send(heddle.self(), 1)
			heddle.receive()
		end
	end,
	mailbox = function()
		while true do
			heddle.send(heddle.self(), 1)
			heddle.receive("not this", 0)
		end
	end,
	close = function()
		local c <close> = setmetatable({}, { __close = forever })
		error("closes")
	end,
}

local pids, names = {}, {}
for name, loop in pairs(loops) do
	local pid = heddle.spawn_with({ watch = true, name = name }, loop)
	pids[#pids + 1] = pid
	names[pid] = name
end

-- With all of them at work another process gets its turns.
local me = heddle.self()
heddle.spawn(function()
	for i = 1, 20 do
		heddle.send(me, { "tick", i })
		heddle.yield()
	end
end)
for i = 1, 20 do
	check.equal(heddle.receive({ "tick" })[2], i)
end

-- One after the other is killed, and ends; the others do not.
for i, pid in ipairs(pids) do
	assert(heddle.kill(pid, i))
	local notice = heddle.receive({ "ended" })
	assert(notice[2] == pid, "another one ended: " .. tostring(names[notice[2]]))
	check.equal(notice[3], "killed", names[pid])
	check.equal(notice[4], i, names[pid])
end
print "preemption is well"
