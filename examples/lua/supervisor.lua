-- supervisor.lua - a process that crashes, and is started again; the others do not notice.
local me = heddle.self()

-- Divides. A division that Lua cannot do is an error, and the end of this process.
local function divider()
	heddle.send(me, "ready")
	while true do
		local _, request, q = table.unpack(heddle.receive({ "call" }))
		heddle.reply(request, q[1] // q[2])
	end
end

local supervisor = heddle.spawn_with({ watch = true }, function()
	assert(heddle.supervise {
		strategy = "one_for_one",
		restarts = 10,
		children = { { name = "divider", start = divider } },
	})
end)

heddle.receive("ready")
for _, q in ipairs { { 84, 2 }, { 1, 0 }, { 9, 3 } } do
	local ok, answer = heddle.call("divider", q)
	print(("%d // %d: %s"):format(q[1], q[2], answer))
	if not ok then
		heddle.receive("ready") -- it has been started again
	end
end
heddle.kill(supervisor) -- and its children with it
heddle.receive({ "ended", supervisor })
