-- words.lua - counts words: a process for each text, and one that adds up what they find.
local texts = {
	"the warp is held and the weft goes through",
	"the heddle lifts the warp",
	"one thread of the weft and one of the warp",
}

local function count(text, to)
	local words = {}
	for word in text:gmatch("%a+") do
		words[word] = (words[word] or 0) + 1
	end
	heddle.send(to, words)
end

for _, text in ipairs(texts) do
	heddle.spawn(count, text, heddle.self())
end

local all, list = {}, {}
for _ = 1, #texts do
	for word, n in pairs(heddle.receive()) do
		all[word] = (all[word] or 0) + n
	end
end
for word, n in pairs(all) do
	list[#list + 1] = { word, n }
end
table.sort(list, function(a, b)
	return a[2] > b[2] or (a[2] == b[2] and a[1] < b[1])
end)
for i = 1, 4 do
	print(list[i][1], list[i][2])
end
