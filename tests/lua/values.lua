-- values.lua - a message is what was sent: random values of all kinds, through a process that sends them back.
local check = require "check"
local me = heddle.self()
local rounds = tonumber(arg[1]) or 150

local echo = heddle.spawn(function()
	while true do
		heddle.send(me, heddle.receive())
	end
end)

local function there_and_back(value)
	assert(heddle.send(echo, value))
	local back = heddle.receive()
	return back
end

-- By a generator of our own: a failure can be repeated.
local seed = tonumber(arg[2]) or 1
local function random(n)
	seed = (seed * 6364136223846793005 + 1442695040888963407)
	return (seed >> 33) % n + 1
end

local corners = {
	0, -1, math.maxinteger, math.mininteger, 0.0, -0.0, 1.5, 1e308, 5e-324, math.huge, -math.huge, 0 / 0, 2 ^ 53, true, false, "", "a\0b",
	("x"):rep(255), ("y"):rep(256), ("z"):rep(70000), "\xff\xfe", me, echo, heddle.any,
}

local function key()
	while true do
		local k = corners[random(#corners)]
		if k == k then
			return k
		end
	end
end

local function value(depth, made)
	local kind = random(10)
	if kind <= 5 or depth > 6 then
		return corners[random(#corners)]
	elseif kind == 6 and #made > 0 then
		return made[random(#made)] -- shared, or a circle
	end
	local t = {}
	made[#made + 1] = t
	for i = 1, random(8) - 1 do
		t[i] = value(depth + 1, made)
	end
	for _ = 1, random(5) - 1 do
		t[key()] = value(depth + 1, made)
	end
	if random(4) == 1 then
		t[{ random(100) }] = "a table is a key"
		t[next(t)] = nil
	end
	return t
end

-- Tables as keys have no equals: compared without them.
local function without_table_keys(t, seen)
	if type(t) == "table" and not seen[t] then
		seen[t] = true
		for k, v in next, t do
			if type(k) == "table" then
				t[k] = nil
			else
				without_table_keys(v, seen)
			end
		end
	end
	return t
end

for i = 1, rounds do
	local sent = without_table_keys(value(1, {}), {})
	check.equal(there_and_back(sent), sent, "round " .. i)
end

-- The sign of zero, and what kind of number it is.
assert(1 / there_and_back(-0.0) == -math.huge)
assert(math.type(there_and_back(3.0)) == "float" and math.type(there_and_back(3)) == "integer")

-- What was one table is one table again, also in a circle, also as a key.
local a = { name = "a" }
a.self, a.twice, a[a] = a, { a, a }, a
local b = there_and_back(a)
assert(b ~= a and b.self == b and b.twice[1] == b and b.twice[2] == b and b[b] == b and b.name == "a")

-- A pid is the same value wherever it comes from, and good for a key.
assert(there_and_back(me) == me and ({ [me] = 1 })[there_and_back({ me })[1]] == 1)

-- Metatables come along.
local point = {}
point.__index = point
point.__add = function(p, q)
	return setmetatable({ x = p.x + q.x }, getmetatable(p))
end
local p = there_and_back({ setmetatable({ x = 1 }, point), setmetatable({ x = 2 }, point) })
assert((p[1] + p[2]).x == 3 and getmetatable(p[1]) == getmetatable(p[2]) and getmetatable(p[1]) ~= point)

-- Functions come along with what they use; what two of them share they still share.
local count, step = 0, 2
local function up()
	count = count + step
	return count
end
local function down()
	count = count - step
	return count
end
local function fib(n)
	return n < 2 and n or fib(n - 1) + fib(n - 2)
end
local f = there_and_back({ up = up, down = down, fib = fib, floor = math.floor, check = check, format = string.format, h = heddle })
assert(f.up() == 2 and f.up() == 4 and f.down() == 2 and count == 0)
assert(f.fib(15) == 610 and f.fib ~= fib)
assert(f.floor == math.floor and f.check == check and f.format == string.format and f.h == heddle)

-- A long list, and a deep one: as deep as can be copied, and one more.
local list = {}
for i = 1, 20000 do
	list[i] = i
end
check.equal(there_and_back(list), list)
local deep = {}
for _ = 1, 498 do
	deep = { deep }
end
check.equal(there_and_back(deep), deep)
check.fails("nested more than 500 levels deep", heddle.send, echo, { { { deep } } })

-- What cannot be copied is refused, with its place; nothing is sent.
check.fails("a coroutine cannot be copied", heddle.send, echo, coroutine.create(print))
check.fails("a userdata cannot be copied to another process: value.a[3]", heddle.send, echo, { a = { 1, 2, io.stdout } })
local out = io.stdout
check.fails("a userdata cannot be copied to another process in local 'out'", heddle.send, echo, function()
	return out
end)
check.fails("written in C", heddle.send, echo, coroutine.wrap(print))
check.equal({ heddle.receive(0.01) }, { nil, "timeout" })
assert(heddle.send(echo, nil) and heddle.receive() == nil)

-- Bad targets.
check.fails("pid or name expected", heddle.send, 5, 5)
check.equal({ heddle.send("nobody", 5) }, { nil, "no process is registered as 'nobody'" })
heddle.kill(echo)
heddle.watch(echo)
check.ended(echo)
local ok, why = heddle.send(echo, 1)
assert(not ok and why:find("no such process"))
print "values are well"
