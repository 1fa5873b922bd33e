-- check.lua - what the tests in this directory share.
local check = {}

-- Fails unless two values are equal, tables by their contents.
function check.equal(got, wanted, what)
	local function same(a, b, seen)
		if rawequal(a, b) or (a ~= a and b ~= b) then
			return math.type(a) == math.type(b)
		end
		if type(a) ~= "table" or type(b) ~= "table" then
			return a == b and math.type(a) == math.type(b)
		end
		if seen[a] ~= nil then
			return seen[a] == b
		end
		seen[a] = b
		for k, v in next, a do
			if not same(v, b[k], seen) then
				return false
			end
		end
		for k in next, b do
			if a[k] == nil then
				return false
			end
		end
		return true
	end
	if not same(got, wanted, {}) then
		error(("%s: got %s, wanted %s"):format(what or "not equal", check.show(got), check.show(wanted)), 2)
	end
end

function check.show(value)
	if type(value) ~= "table" then
		return type(value) == "string" and ("%q"):format(value) or tostring(value)
	end
	local parts = {}
	for k, v in next, value do
		parts[#parts + 1] = ("[%s]=%s"):format(tostring(k), tostring(v))
	end
	return "{" .. table.concat(parts, ", ") .. "}"
end

-- Fails unless f raises an error whose text has `text` in it.
function check.fails(text, f, ...)
	local ok, err = pcall(f, ...)
	if ok then
		error("no error; wanted: " .. text, 2)
	end
	if not tostring(err):find(text, 1, true) then
		error(("the error is: %s; wanted: %s"):format(tostring(err), text), 2)
	end
end

-- The notice of the end of a process that was spawned with watch.
function check.ended(pid)
	return heddle.receive({ "ended", pid })
end

return check
