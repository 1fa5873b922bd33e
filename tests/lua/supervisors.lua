-- supervisors.lua - children that end are started again, as the strategy says, and not for ever.
local check = require "check"
local me = heddle.self()

local function supervise(what)
	return heddle.spawn_with({ watch = true }, function()
		local ok, why = heddle.supervise(what)
		heddle.send(me, { "over", ok, why })
	end)
end

-- A child says that it lives, and does what it is told.
local function child(name)
	heddle.send(me, { "up", name, heddle.self() })
	local m = heddle.receive()
	if m == "crash" then
		heddle.exit("told to crash")
	end
end

local function up(name)
	return heddle.receive({ "up", name })[3]
end

-- One for one.
local s = supervise { children = {
	{ name = "a", start = child, args = { "a" } },
	{ name = "b", start = child, args = { "b" } },
}, restarts = 100 }
local a, b = up "a", up "b"
assert(heddle.whereis("a") == a and heddle.whereis("b") == b)
for _ = 1, 10 do
	heddle.send("a", "crash")
	local again = up "a"
	assert(again ~= a and heddle.whereis("a") == again and heddle.whereis("b") == b)
	a = again
end
heddle.send("a", "return") -- started again after that, too
a = up "a"
heddle.kill(s)
check.ended(s)
heddle.watch(a)
check.ended(a) -- no child outlives it
assert(heddle.whereis("a") == nil and heddle.whereis("b") == nil)

-- One for all, rest for one.
for _, case in ipairs { { "one_for_all", "x", "z" }, { "rest_for_one", "z" } } do
	s = supervise { strategy = case[1], children = {
		{ name = "x", start = child, args = { "x" } },
		{ name = "y", start = child, args = { "y" } },
		{ name = "z", start = child, args = { "z" } },
	} }
	up "x" up "y" up "z"
	heddle.send("y", "crash")
	up "y"
	for i = 2, #case do
		up(case[i])
	end
	check.equal({ heddle.receive({ "up" }, 0.01) }, { nil, "timeout" })
	heddle.kill(s)
	check.ended(s)
end

-- A real error, in code that is loaded as a module; only failures count; then all is over.
local count = 0
s = supervise { children = { { start = "crasher", args = { me }, restart = "on_failure" } }, restarts = 5 }
for i = 1, 3 do
	local m = heddle.receive({ "call" })
	heddle.reply(m[2], i < 3 and "crash" or "return")
	count = count + 1
end
check.equal(heddle.receive({ "over" }), { "over", true })
check.ended(s)
assert(count == 3)

-- Too often.
s = supervise { children = { { start = function()
	heddle.exit("at once")
end } }, restarts = 3, within = 100 }
check.equal(heddle.receive({ "over" }), { "over", nil, "the children were restarted too often" })
check.ended(s)

-- A tree: the inner supervisor gives up, and is started again by the outer one.
s = heddle.spawn_with({ watch = true }, function()
	assert(heddle.supervise { children = { { start = function()
		heddle.send(me, "inner begins")
		assert(heddle.supervise { restarts = 0, children = { { start = function()
			heddle.exit("always")
		end } } })
	end } }, restarts = 2, within = 100 })
end)
for _ = 1, 3 do
	assert(heddle.receive("inner begins"))
end
local notice = check.ended(s)
assert(notice[3] == "error" and notice[4]:find("too often"))

-- Bad tables.
local function refused(text, what)
	check.fails(text, heddle.supervise, what)
end
refused("children is a nil", {})
refused("strategy is none of one_for_one, one_for_all, rest_for_one", { strategy = "best", children = {} })
refused("restart is none of always, on_failure, never", { children = { { restart = "maybe", start = child } } })
refused("start is a nil", { children = { {} } })
refused("a child is a number", { children = { 5 } })
refused("'naem', which means nothing", { children = { { naem = "x", start = child } } })
refused("within is not a number of seconds", { within = -1, children = {} })
refused("a coroutine cannot be copied", { children = { { start = child, args = { coroutine.create(print) } } } })
check.equal(heddle.supervise { children = {} }, true)
print "supervisors are well"
