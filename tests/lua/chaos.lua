-- chaos.lua - processes that do all that there is are killed at any moment; then nothing is left: no process, port or message.
local rounds, seed = tonumber(arg[1]) or 100, tonumber(arg[2]) or 1
local me = heddle.self()
heddle.sleep(0.001) -- there is one process more that has begun this one, and the port in which we sleep
local before = heddle.stats()

local function random(n)
	seed = seed * 6364136223846793005 + 1442695040888963407
	return (seed >> 33) % n + 1
end

local server = heddle.spawn(function()
	local kept = {}
	while true do
		local m = heddle.receive()
		if m == "end" then
			return
		elseif m[1] == "call" then
			kept[#kept + 1] = m[2]
			if #kept > 5 then
				heddle.reply(table.remove(kept, 1), { m[3], heddle.self() })
			end
		end
	end
end)

local deeds = {
	function()
		heddle.receive()
	end,
	function()
		heddle.receive(function()
			while true do
			end
		end)
	end,
	function()
		heddle.sleep(1000)
	end,
	function()
		while true do
			heddle.call(server, { "question", heddle.self() })
		end
	end,
	function()
		while true do
			heddle.send(heddle.self(), { heddle.self(), ("x"):rep(1000), function()
				return server
			end })
			heddle.receive({ "not this" }, 0)
		end
	end,
	function()
		heddle.supervise { restarts = 1000000, children = { { start = function()
			heddle.receive(0.0001)
			heddle.exit("on and on")
		end }, { start = function()
			heddle.receive()
		end } } }
	end,
	function()
		local child = heddle.spawn_with({ link = true, watch = true }, function()
			heddle.receive()
		end)
		heddle.kill(child)
		heddle.receive()
	end,
	function()
		heddle.register("name " .. tostring(heddle.self()))
		heddle.register("contended")
		coroutine.wrap(function()
			table.sort({ 3, 2, 1 }, function()
				while true do
				end
			end)
		end)()
	end,
	function()
		local t = {}
		while true do
			t[#t % 1000 + 1] = setmetatable({ heddle.self() }, { __gc = function() end })
			heddle.yield()
		end
	end,
	function()
		heddle.register("contended")
		while true do
			heddle.send("contended", { "by name" })
			heddle.call("contended", "by name", 0.0001)
			heddle.whereis("contended")
			heddle.receive({ "by name" }, 0)
			heddle.unregister("contended")
		end
	end,
	function()
		heddle.read_line(0.0001)
		heddle.exit("no input")
	end,
}

for round = 1, rounds do
	local pids = {}
	for i = 1, random(6) do
		pids[i] = heddle.spawn_with({ watch = true, memory = 8 << 20 }, deeds[random(#deeds)])
	end
	for _ = 1, random(8) do
		heddle.send(pids[random(#pids)], { "noise", me })
		if random(2) == 1 then
			heddle.yield()
		end
		if random(5) == 1 then
			heddle.sleep(0.0002)
		end
	end
	for _, pid in ipairs(pids) do
		heddle.kill(pid)
	end
	for _, pid in ipairs(pids) do
		heddle.receive({ "ended", pid })
	end
end
heddle.watch(server)
heddle.send(server, "end")
heddle.receive({ "ended", server })
deeds, server = nil, nil
collectgarbage()
collectgarbage()

-- Children that are killed with their parents end a moment later.
for _ = 1, 1000 do
	local s = heddle.stats()
	if s.live_processes <= before.live_processes and s.live_ports <= before.live_ports and s.live_messages == 0 then
		break
	end
	heddle.sleep(0.002)
end
local s = heddle.stats()
assert(s.live_processes <= before.live_processes, "processes: " .. s.live_processes)
assert(s.live_ports <= before.live_ports, "ports: " .. s.live_ports)
assert(s.live_messages == 0, "messages: " .. s.live_messages)
assert(heddle.whereis("contended") == nil)
print "nothing is left"
