-- race.lua - a bug that `heddle explore race.lua` finds: two processes read a balance, and write it back, and nothing keeps one from doing so between the other's
-- reading and writing.
local account = heddle.spawn_with({ daemon = true }, function()
	local balance = 100
	while true do
		local _, request, m = table.unpack(heddle.receive({ "call" }))
		if m.set ~= nil then
			balance = m.set
		end
		heddle.reply(request, balance)
	end
end)

local function ask(m)
	local ok, answer = heddle.call(account, m)
	return assert(ok and answer, answer)
end

local function pay_in(amount)
	local balance = ask {}
	ask { set = balance + amount }
end

local ann = heddle.spawn_with({ watch = true, name = "ann" }, pay_in, 10)
local bob = heddle.spawn_with({ watch = true, name = "bob" }, pay_in, 20)
heddle.receive({ "ended", ann, "normal" })
heddle.receive({ "ended", bob, "normal" })
assert(ask {} == 130, "money is lost")
print "nothing is lost"
