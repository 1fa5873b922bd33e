-- pool.lua - a bounded pool: 100 jobs for 4 workers, of which each has one job at a time.
local me = heddle.self()
local jobs, workers = 100, 4

local function worker(boss)
	heddle.send(boss, { "idle", heddle.self() })
	while true do
		local m = heddle.receive({ "job" }, { "stop" })
		if m[1] == "stop" then
			return
		end
		local sum = 0
		for i = 1, m.n do
			sum = sum + i
		end
		heddle.send(boss, { "done", n = m.n, sum = sum })
		heddle.send(boss, { "idle", heddle.self() })
	end
end

local running = {}
for i = 1, workers do
	running[i] = heddle.spawn_with({ watch = true, name = "worker " .. i }, worker, me)
end

local next_job, done, total = 1, 0, 0
while done < jobs do
	local m, which = heddle.receive({ "done" }, { "idle" }, { "ended" })
	if which == 1 then
		done, total = done + 1, total + m.sum
	elseif which == 2 and next_job <= jobs then
		heddle.send(m[2], { "job", n = next_job })
		next_job = next_job + 1
	elseif which == 3 then
		error("a worker died: " .. tostring(m[4]))
	end
end
for _, pid in ipairs(running) do
	heddle.send(pid, { "stop" })
	heddle.receive({ "ended", pid, "normal" })
end
print(done .. " jobs, and their sum is " .. total)
