-- race_fixed.lua - as race.lua, but the process that has the balance changes it: nothing comes between. `heddle explore race_fixed.lua` finds nothing.
local account = heddle.spawn_with({ daemon = true }, function()
	local balance = 100
	while true do
		local _, request, m = table.unpack(heddle.receive({ "call" }))
		balance = balance + (m.add or 0)
		heddle.reply(request, balance)
	end
end)

local function ask(m)
	local ok, answer = heddle.call(account, m)
	return assert(ok and answer, answer)
end

local function pay_in(amount)
	ask { add = amount }
end

local ann = heddle.spawn_with({ watch = true, name = "ann" }, pay_in, 10)
local bob = heddle.spawn_with({ watch = true, name = "bob" }, pay_in, 20)
heddle.receive({ "ended", ann, "normal" })
heddle.receive({ "ended", bob, "normal" })
assert(ask {} == 130, "money is lost")
print "nothing is lost"
