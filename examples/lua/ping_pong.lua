-- ping_pong.lua - two processes that send each other messages.
local me = heddle.self()

local pong = heddle.spawn(function()
	while true do
		local m = heddle.receive()
		if m[1] == "stop" then
			return
		end
		heddle.send(m.from, { "pong", m[2] })
	end
end)

for i = 1, 3 do
	assert(heddle.send(pong, { "ping", i, from = me }))
	local m = heddle.receive({ "pong" })
	print("pong", m[2])
end
heddle.send(pong, { "stop" })
