-- crasher.lua - a module that is a process (supervisors.lua): asks what to do, and does it.
return function(boss)
	local ok, what = heddle.call(boss, "what?")
	if what == "crash" then
		local nothing
		return nothing.field
	end
end
