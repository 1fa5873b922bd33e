-- deaths.lua - what kills a process kills that process, and its end says what it was. The reports on stderr are part of it.
local check = require "check"

local limit = 4 << 20
local function dies(f, ...)
	local pid = heddle.spawn_with({ watch = true, memory = limit }, f, ...)
	local notice = check.ended(pid)
	return notice[3], notice[4]
end

local function dies_of(text, f, ...)
	local how, what = dies(f, ...)
	check.equal(how, "error")
	assert(what:find(text, 1, true), ("died of '%s', not of '%s'"):format(what, text))
end

-- A bystander lives through all of this.
local bystander = heddle.spawn(function()
	while true do
		local m = heddle.receive()
		heddle.reply(m[2], m[3] + 1)
	end
end)

check.equal({ dies(function()
	return 1
end) }, { "normal" })
check.equal({ dies(function()
	heddle.exit()
end) }, { "normal" })
check.equal({ dies(function()
	pcall(function()
		table.sort({ 2, 1 }, function()
			heddle.exit("from within")
		end)
	end)
end) }, { "error", "from within" })
dies_of("deaths.lua:", function()
	error("an error")
end)
dies_of("attempt to index a nil value (field 'x')", function()
	local t = {}
	return t.x.y
end)
dies_of("attempt to call a nil value (global 'not_there')", function()
	not_there()
end)
dies_of("table: ", function()
	error({})
end)
dies_of("says itself", function()
	error(setmetatable({}, { __tostring = function()
		return "says itself"
	end }))
end)
dies_of("module 'no_such_module' not found", "no_such_module")
dies_of("a module that is spawned returns a function", "check")

-- Memory: tables, strings, coroutines, what is received.
dies_of("not enough memory", function()
	local t = {}
	while true do
		t[#t + 1] = {}
	end
end)
dies_of("not enough memory", function()
	return ("x"):rep(64 << 20)
end)
dies_of("not enough memory", function()
	local s = "x"
	while true do
		s = s .. s
	end
end)
dies_of("not enough memory", function(_)
	heddle.yield()
end, ("x"):rep(5 << 20))
-- It can be caught, and then there is memory again.
check.equal({ dies(function()
	local ok, err = pcall(string.rep, "x", 64 << 20)
	assert(not ok and err == "not enough memory")
	local t = {}
	for i = 1, 1000 do
		t[i] = { i }
	end
end) }, { "normal" })
-- A message that is too large is not lost: it is an error for as long as it is the next.
local small = heddle.spawn_with({ watch = true, memory = 1 << 20 }, function()
	for _ = 1, 3 do
		local ok, err = pcall(heddle.receive)
		assert(not ok and err:find("not enough memory"), err)
	end
	heddle.exit("it is too large")
end)
heddle.send(small, ("x"):rep(2 << 20))
check.equal(check.ended(small), { "ended", small, "error", "it is too large" })

limit = 100 << 20
-- Depth: of Lua, of C, of both, of coroutines, of patterns, of the compiler.
dies_of("stack overflow", function()
	local function deeper()
		return 1 + deeper()
	end
	deeper()
end)
dies_of("C stack overflow", function()
	local function deeper(s)
		return (s:gsub(".", deeper))
	end
	deeper("x")
end)
dies_of("C stack overflow", function()
	local function deeper()
		return coroutine.wrap(deeper)()
	end
	deeper()
end)
dies_of("C stack overflow", function()
	local function deeper()
		return select(2, assert(pcall(deeper)))
	end
	deeper()
end)
dies_of("stack overflow", function()
	local t = {}
	setmetatable(t, { __index = function(_, k)
		return t[k + 1]
	end })
	return t[1]
end)
dies_of("overflow", function()
	error(assert(load(("("):rep(1000))))
end)
dies_of("pattern too complex", function()
	return (("x"):rep(300000):find(("x?"):rep(300000) .. "y"))
end)
dies_of("overflow", function()
	local function deeper()
		table.sort({ 2, 1 }, deeper)
	end
	deeper()
end)

-- A death in a coroutine, in a coroutine that is resumed and not wrapped, in what is closed.
dies_of("inner", function()
	coroutine.wrap(function()
		heddle.sleep(0)
		error("inner")
	end)()
end)
check.equal({ dies(function()
	local ok, err = coroutine.resume(coroutine.create(function()
		heddle.yield()
		error("caught", 0)
	end))
	assert(ok == false and err == "caught")
end) }, { "normal" })
local me = heddle.self()
dies_of("closing", function()
	local c <close> = setmetatable({}, { __close = function()
		heddle.send(me, "closed")
	end })
	error("closing")
end)
check.equal(heddle.receive("closed"), "closed")

-- A finalizer that fails fails alone.
check.equal({ dies(function()
	for _ = 1, 100 do
		setmetatable({}, { __gc = function()
			error("in a finalizer")
		end })
	end
	collectgarbage()
end) }, { "normal" })

check.equal({ heddle.call(bystander, 41) }, { true, 42 })
heddle.kill(bystander)
print "deaths are well"
