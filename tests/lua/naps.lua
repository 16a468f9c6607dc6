-- Many sleeps, with or without work between; prints how many were cut short.
-- naps.lua NAPS-FOLDER nap|poll N MS WORK [MODE OUT HZ]
package.cpath = arg[1] .. "/?.so;" .. package.cpath
local naps = require "naps"
local sleep, n, ms = naps[arg[2]], tonumber(arg[3]), tonumber(arg[4])
local rounds = tonumber(arg[5])
local cpprof = arg[6] and require "cpprof"

local function step(i) return i % 3 end
local function work()
    local x = 0
    for i = 1, rounds do x = x + step(i) end
    return x
end
local function one()
    local cut = sleep(ms) -- sleeps
    return cut and 1 or 0
end
local function all()
    local n_cut = 0
    for _ = 1, n do
        n_cut = n_cut + one()
        work()
    end
    return n_cut
end

if cpprof then
    assert(cpprof.start {mode = arg[6], out = arg[7], hz = tonumber(arg[8])})
end
print(all())
coroutine.wrap(function() print(all()) end)()
if cpprof then assert(cpprof.stop()) end
