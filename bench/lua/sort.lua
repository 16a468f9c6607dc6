local seed = 42
local function random() seed = (seed * 1103515245 + 12345) % 2147483648 return seed end
for _ = 1, 15 do
    local list = {}
    for i = 1, 50000 do list[i] = random() end
    table.sort(list, function(a, b) return a > b end)
    table.sort(list)
end
