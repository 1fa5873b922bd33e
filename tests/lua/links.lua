-- links.lua - links, watches, names, kills, calls.
local check = require "check"
local me = heddle.self()

local function waits()
	heddle.receive("never")
end

-- A notice for each watch, also of one that has ended; none after unwatch.
local pid = heddle.spawn(waits)
assert(heddle.watch(pid) and heddle.watch(pid) and heddle.watch(pid) and heddle.unwatch(pid))
assert(heddle.kill(pid))
check.equal(check.ended(pid), { "ended", pid, "killed" })
check.equal(check.ended(pid), { "ended", pid, "killed" })
check.equal({ heddle.receive(0) }, { nil, "timeout" })
assert(heddle.watch(pid))
local how = check.ended(pid)[3]
assert(how == "gone" or how == "killed")
assert(not heddle.unwatch(pid))
check.equal({ heddle.kill(pid) }, { nil, "there is no such process, or not any more" })

-- A notice comes after all that the process has sent.
for _ = 1, 20 do
	pid = heddle.spawn_with({ watch = true }, function()
		for i = 1, 5 do
			heddle.send(me, i)
		end
	end)
	for i = 1, 5 do
		assert(heddle.receive() == i)
	end
	check.equal(heddle.receive(), { "ended", pid, "normal" })
end

-- Links: an error takes the other one along, a return does not, unlink undoes it.
local function linked(f, patience)
	local outer = heddle.spawn_with({ watch = true }, function()
		heddle.spawn_with({ link = true }, f)
		heddle.receive("never", patience)
		return "survived"
	end)
	return check.ended(outer)[3]
end
check.equal(linked(function()
	heddle.exit("fails")
end, 60), "killed")
check.equal(linked(function() end, 0.02), "normal")
local a = heddle.spawn_with({ watch = true }, function()
	local b = heddle.spawn(waits)
	assert(heddle.link(b) and heddle.unlink(b))
	local ok, why = heddle.unlink(b)
	assert(not ok and why)
	heddle.watch(b)
	heddle.kill(b)
	check.ended(b)
	ok, why = heddle.link(b)
	assert(not ok and why:find("no such process"))
end)
check.equal(check.ended(a)[3], "normal")
local ok, why = heddle.link(me)
assert(not ok and why)

-- Names: found while their process lives, once each, given back.
local named = heddle.spawn(function()
	assert(heddle.register("ann") and heddle.register("ann too"))
	heddle.send(me, "registered")
	heddle.receive("never")
end)
heddle.receive("registered")
assert(heddle.whereis("ann") == named and heddle.whereis("ann too") == named and heddle.whereis("bob") == nil)
check.equal({ heddle.register("ann") }, { nil, "a process is registered as 'ann' already" })
assert(not heddle.unregister("ann"))
assert(heddle.register("me") and heddle.send("me", "to a name") and heddle.receive() == "to a name" and heddle.unregister("me"))
assert(heddle.whereis("me") == nil)
check.fails("1 to 255 bytes", heddle.register, "")
check.fails("1 to 255 bytes", heddle.register, ("x"):rep(256))
heddle.watch(named)
heddle.kill(named)
check.ended(named)
assert(heddle.whereis("ann") == nil and heddle.register("ann"))

-- Calls: an answer, none in time, none any more, none ever, twice, to itself.
local server = heddle.spawn(function()
	local kept
	while true do
		local m = heddle.receive()
		local request, what = m[2], m[3]
		if what == "keep" then
			kept = request
		elseif what == "forget" then
			request, m = nil, nil
			collectgarbage()
		elseif what == "twice" then
			assert(heddle.reply(request, 1))
			check.fails("answered before", heddle.reply, request, 2)
		elseif what == "nil" then
			heddle.reply(request, nil)
		elseif what == "kept?" then
			local done, text = heddle.reply(kept, "late")
			heddle.reply(request, { done, text })
		elseif what == "die" then
			heddle.exit("asked to")
		else
			heddle.reply(request, { what })
		end
	end
end)
check.equal({ heddle.call(server, "x") }, { true, { "x" } })
check.equal({ heddle.call(server, "twice") }, { true, 1 })
check.equal({ heddle.call(server, "nil") }, { true })
check.equal({ heddle.call(server, "keep", 0.01) }, { false, "timeout" })
assert(select(2, heddle.call(server, "kept?"))[2]:find("no such process"))
assert(select(2, heddle.call(server, "forget")):find("without a reply"))
assert(select(2, heddle.call(server, "die")):find("without a reply"))
local gone, text = heddle.call(server, "x") -- it hears that there is no reply a moment before the server has ended
assert(not gone and (text:find("no such process") or text:find("without a reply")))
local done, reason = heddle.call(me, "x", 1)
assert(not done and reason)
check.equal({ heddle.call("nobody", 1) }, { false, "no process is registered as 'nobody'" })
check.fails("request expected", heddle.reply, {}, 1)
check.equal({ heddle.receive(0) }, { nil, "timeout" })

-- A request cannot be sent on, and a process that calls can be killed.
local hoarder = heddle.spawn(function()
	local m = heddle.receive()
	check.fails("a request cannot be copied", heddle.send, me, m)
	heddle.send(me, "checked")
	heddle.receive("never")
end)
local caller = heddle.spawn_with({ watch = true }, function()
	heddle.call(hoarder, 1)
end)
heddle.receive("checked")
heddle.kill(caller, -3)
check.equal(check.ended(caller), { "ended", caller, "killed", -3 })
heddle.kill(hoarder)
heddle.watch(hoarder)
check.ended(hoarder)
check.equal(tostring(heddle.self()):match("^<pid %d+>$") ~= nil, true)

-- How to spawn: what is wrong is refused.
check.fails("'colour', which means nothing", heddle.spawn_with, { colour = 1 }, waits)
check.fails("priority is not an integer from 10 to 80", heddle.spawn_with, { priority = 81 }, waits)
check.fails("at most 31 bytes", heddle.spawn_with, { name = ("x"):rep(32) }, waits)
check.fails("function or name of a module expected", heddle.spawn, 5)
check.fails("written in C cannot be spawned", heddle.spawn, print)
local high = heddle.spawn_with({ priority = 60, name = "high", daemon = true }, waits)
assert(heddle.kill(high))
print "links are well"
