-- 70, 20 and 10 of 100 by turns; what they did by the clock of the system.
local cpprof = require "cpprof"

local function burn(n)
    local x = 0
    for i = 1, n do
        x = x + i % 7
    end
    return x
end

function seventy(n) local x = burn(7 * n) return x end
function twenty(n) local x = burn(2 * n) return x end
function ten(n) local x = burn(n) return x end

assert(cpprof.start {mode = arg[1], out = arg[2], hz = tonumber(arg[4])})
for _ = 1, tonumber(arg[3]) do
    seventy(2e5)
    twenty(2e5)
    ten(2e5)
end
assert(cpprof.stop())
