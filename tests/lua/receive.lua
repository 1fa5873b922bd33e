-- receive.lua - the order of messages, patterns, timeouts.
local check = require "check"
local me = heddle.self()

-- Messages of one sender come in their order; what is not wanted stays, in its order.
for i = 1, 100 do
	heddle.send(me, { i % 3, i })
end
local got = {}
for _ = 1, 33 do
	local m, which = heddle.receive({ 0 })
	assert(which == 1)
	got[#got + 1] = m[2]
end
for i = 2, #got do
	assert(got[i] == got[i - 1] + 3)
end
local last = 0
for _ = 1, 67 do
	local m = heddle.receive()
	assert(m[1] ~= 0 and m[2] > last)
	last = m[2]
end
check.equal({ heddle.receive(0) }, { nil, "timeout" })

-- Which pattern, and what patterns are.
heddle.send(me, { kind = "job", size = 5, owner = me, tags = { a = 1, b = 2 } })
local function try(...)
	return select(2, heddle.receive(...))
end
assert(try({ kind = "task" }, 0) == "timeout")
assert(try({ kind = "job", size = 6 }, 0) == "timeout")
assert(try({ tags = { c = heddle.any } }, 0) == "timeout")
assert(try({ size = function(n)
	return n > 5
end }, 0) == "timeout")
assert(try("job", true, me, {
	kind = "job",
	owner = me,
	size = function(n)
		return n == 5
	end,
	tags = { b = heddle.any },
}, 0) == 4)
heddle.send(me, "text")
heddle.send(me, true)
heddle.send(me, 7)
assert(heddle.receive(function(m)
	return m == 7
end) == 7)
assert(heddle.receive(true) == true and heddle.receive("text") == "text")
heddle.send(me, false)
local m, which = heddle.receive(heddle.any)
assert(m == false and which == 1)

-- Each message is shown once in a call, also those that come while it waits.
local shown = {}
for i = 1, 5 do
	heddle.send(me, i)
end
heddle.spawn(function()
	for i = 6, 10 do
		heddle.send(me, i)
		heddle.sleep(0.001)
	end
end)
assert(heddle.receive(function(m)
	shown[m] = (shown[m] or 0) + 1
	return m == 10
end) == 10)
check.equal(shown, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 })
for i = 1, 9 do
	assert(heddle.receive() == i)
end

-- A pattern that fails takes nothing away.
heddle.send(me, "kept")
check.fails("bad guard", heddle.receive, function()
	error("bad guard")
end)
check.fails("inside a function that is a pattern", heddle.receive, function()
	heddle.receive(0)
end)
check.fails("cannot wait here", heddle.receive, function()
	heddle.sleep(1)
end)
check.fails("nil matches nothing", heddle.receive, nil, "x")
check.fails("not a number of seconds", heddle.receive, 0 / 0)
assert(heddle.receive() == "kept")

-- Deadlines: the past is tried once, and success beats it.
check.equal({ heddle.receive(-5) }, { nil, "timeout" })
check.equal({ heddle.receive("x", 0.002) }, { nil, "timeout" })
heddle.send(me, "there")
check.equal({ heddle.receive(0) }, { "there", 1 })
heddle.spawn(function()
	heddle.sleep(0.005)
	heddle.send(me, "late")
end)
check.equal({ heddle.receive(1e6) }, { "late", 1 })
local before = heddle.now()
heddle.sleep(0.005)
assert(heddle.now() - before >= 0.005)
-- Messages do not end a sleep.
heddle.send(me, 1)
before = heddle.now()
heddle.sleep(0.005)
assert(heddle.now() - before >= 0.005 and heddle.receive() == 1)

-- A thousand that are not wanted, and the one that is.
for i = 1, 1000 do
	heddle.send(me, { "noise", i })
end
for i = 1, 1000 do
	heddle.send(me, { "news", i })
	assert(heddle.receive({ "news" })[2] == i)
end
for i = 1, 1000 do
	assert(heddle.receive()[2] == i)
end

-- Many senders: nothing is lost or doubled, and each sender's messages are in order.
local senders, each = 20, 200
for s = 1, senders do
	heddle.spawn(function()
		for i = 1, each do
			heddle.send(me, { s, i })
			if i % 7 == s % 7 then
				heddle.yield()
			end
		end
	end)
end
local next_of = {}
for _ = 1, senders * each do
	local m = heddle.receive(function(m)
		return m[1] % 2 == 0
	end, heddle.any)
	assert(m[2] == (next_of[m[1]] or 0) + 1)
	next_of[m[1]] = m[2]
end
check.equal({ heddle.receive(0) }, { nil, "timeout" })
print "receive is well"
