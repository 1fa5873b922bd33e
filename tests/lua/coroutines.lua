-- coroutines.lua - coroutines inside a process: they behave as Lua's do, and a process may wait inside them, at any depth.
local check = require "check"

-- A generator of a generator, that waits, and is preempted (see --budget), at each level.
local function numbers(n)
	return coroutine.wrap(function()
		for i = 1, n do
			heddle.yield()
			coroutine.yield(i)
		end
	end)
end
local function squares(n)
	return coroutine.wrap(function()
		for i in numbers(n) do
			heddle.sleep(i == 3 and 0.001 or 0)
			coroutine.yield(i, i * i)
		end
		return "end"
	end)
end
local got = {}
for i, square in squares(5) do
	if i == "end" then
		break
	end
	got[i] = square
end
check.equal(got, { 1, 4, 9, 16, 25 })

-- A receive inside a coroutine, whose values travel both ways.
local me = heddle.self()
local co = coroutine.create(function(a, b)
	local c = coroutine.yield(a + b)
	local m = heddle.receive()
	local d, e = coroutine.yield(m * c)
	return d, e, nil
end)
check.equal({ coroutine.resume(co, 1, 2) }, { true, 3 })
heddle.spawn(function()
	heddle.sleep(0.002)
	heddle.send(me, 6)
end)
check.equal({ coroutine.resume(co, 7) }, { true, 42 })
check.equal(coroutine.status(co), "suspended")
check.equal(table.pack(coroutine.resume(co, "d", "e")), { true, "d", "e", nil, n = 4 })
check.equal(coroutine.status(co), "dead")
check.equal({ coroutine.resume(co) }, { false, "cannot resume dead coroutine" })

-- Errors: with the place where they were raised and, of wrap, where it was called.
check.equal(select(2, coroutine.resume(coroutine.create(function()
	error({ 1 })
end))), { 1 })
check.fails("cannot resume dead coroutine", function()
	local f = coroutine.wrap(function() end)
	f()
	f()
end)
local closed = 0
check.fails("inside", coroutine.wrap(function()
	local c <close> = setmetatable({}, { __close = function()
		closed = closed + 1
	end })
	heddle.yield()
	error("inside")
end))
check.equal(closed, 1)
local suspended = coroutine.create(function()
	local c <close> = setmetatable({}, { __close = function()
		closed = closed + 1
	end })
	coroutine.yield()
end)
coroutine.resume(suspended)
check.equal({ coroutine.close(suspended) }, { true })
check.equal(closed, 2)

-- The process itself is no coroutine of the program's.
check.fails("outside a coroutine", coroutine.yield)
check.equal(coroutine.isyieldable(), false)
check.equal(select(2, coroutine.running()), true)
check.equal(coroutine.wrap(function()
	return select(2, coroutine.running()), coroutine.isyieldable()
end)(), false)
check.fails("coroutine expected", coroutine.resume, 5)

-- Where C code has called: waiting is refused, and says so; being preempted is not waiting.
check.fails("cannot wait here", string.gsub, "x", ".", function()
	heddle.sleep(1)
end)
check.fails("cannot wait here", table.sort, { 2, 1 }, function()
	coroutine.wrap(function()
		heddle.receive()
	end)()
end)
local n = 0
table.sort({ 3, 2, 1 }, function(a, b)
	coroutine.wrap(function()
		heddle.yield()
		n = n + 1
	end)()
	return a < b
end)
assert(n >= 2)
local many = {}
for i = 1, 2000 do
	many[i] = (i * 7919) % 2003
end
table.sort(many, function(a, b)
	local sum = 0
	for i = 1, 20 do
		sum = sum + i
	end
	return a < b
end)
for i = 2, #many do
	assert(many[i - 1] <= many[i])
end

-- pcall, error objects and metamethods around waits.
check.equal({ pcall(function()
	heddle.yield()
	error("thrown", 0)
end) }, { false, "thrown" })
check.equal({ xpcall(function()
	heddle.sleep(0)
	error("thrown", 0)
end, function(m)
	return m .. " and handled"
end) }, { false, "thrown and handled" })
local slow = setmetatable({}, {
	__index = function(_, k)
		heddle.yield()
		return k .. "!"
	end,
	__add = function(_, b)
		heddle.yield()
		return b
	end,
	__eq = function()
		heddle.yield()
		return true
	end,
	__lt = function()
		heddle.yield()
		return true
	end,
	__concat = function()
		heddle.yield()
		return "concat"
	end,
	__call = function(_, ...)
		heddle.yield()
		return ...
	end,
	__len = function()
		heddle.yield()
		return 7
	end,
})
check.equal({ slow.x, slow + 5, slow == setmetatable({}, getmetatable(slow)), slow < 1, slow .. "x", #slow, slow(1, 2) },
	{ "x!", 5, true, true, "concat", 7, 1, 2 })

-- The libraries are whole, whichever way they are reached.
local function whole(name)
	local n = 0
	for k, v in pairs(_G[name]) do
		n = n + 1
	end
	return n
end
for name, least in pairs { table = 7, io = 13, os = 10, math = 25, utf8 = 6, debug = 10, coroutine = 7, package = 7, string = 17 } do
	local pid = heddle.spawn_with({ watch = true }, function()
		assert(require(name) == _G[name] and whole(name) >= least)
	end)
	check.equal(check.ended(pid)[3], "normal", name)
end
local pid = heddle.spawn_with({ watch = true }, function()
	package.path = "nowhere/?.lua"
	assert(package.path == "nowhere/?.lua" and not pcall(require, "crasher"))
	math.twice = function(x)
		return 2 * x
	end
	assert(math.twice(math.floor(2.5)) == 4 and "10" + 1 == 11 and ("x"):upper() == "X")
	assert(debug.sethook == nil and debug.traceback() and os.time() > 0)
	assert(pcall(require, "no such module") == false)
end)
check.equal(check.ended(pid)[3], "normal")
print "coroutines are well"
