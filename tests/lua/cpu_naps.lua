-- cpu_naps.lua NAPS-FOLDER OUT ROUNDS: 2 ms of work and a sleep of 6, by turns.
package.cpath = arg[1] .. "/?.so;" .. package.cpath
local naps = require "naps"
local cpprof = require "cpprof"
local clock = os.clock

local function compute(seconds)
    local x, over = 0, clock() + seconds
    repeat
        for i = 1, 1000 do x = x + i % 7 end
    until clock() >= over
    return x
end

local function rest()
    local cut = naps.nap(6)
    return cut
end

assert(cpprof.start {mode = "cpu", out = arg[2], hz = 250})
for _ = 1, tonumber(arg[3]) do
    compute(0.002)
    rest()
end
assert(cpprof.stop())
