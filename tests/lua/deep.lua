-- Recursion to the end of Lua's stack: deep.lua OUT SECONDS
local cpprof = require "cpprof"
assert(cpprof.start {hz = 1000, out = arg[1]})
local function inf() return 1 + inf() end
for i = 1, 3 do assert(not pcall(inf)) end
local function work(s)
    local t = os.clock() + s
    while os.clock() < t do end
    return 1
end
work(tonumber(arg[2]))
assert(cpprof.stop())
