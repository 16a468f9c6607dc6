-- split.lua MODE OUT ROUNDS HZ: 70, 20 and 10 of 100 by turns. Prints what they
-- took by the clock of the mode: on a busy machine others take their time from
-- whoever runs just then. A turn is many ticks long, so that what a tick is early
-- or late at its ends is little of it.
--
-- Each looks at the clocks where it ends: who waits for a processor may get to
-- wait in that look, and is sampled there.
local cpprof = require "cpprof"
local took, last = {0, 0, 0}, 0

-- Seconds that the thread has waited for a processor; 0 where that is not told.
local function waited()
    local file = io.open "/proc/thread-self/schedstat"
    if not file then return 0 end
    local _, ns = file:read("*n", "*n")
    file:close()
    return (ns or 0) / 1e9
end

local function clock()
    return os.clock() + (arg[1] == "cpu" and 0 or waited())
end

local function look(part)
    local now = clock()
    took[part] = took[part] + now - last
    last = now
end

local function burn(n)
    local x = 0
    for i = 1, n do
        x = x + i % 7
    end
    return x
end

function seventy(n) burn(7 * n) look(1) return 1 end
function twenty(n) burn(2 * n) look(2) return 1 end
function ten(n) burn(n) look(3) return 1 end

assert(cpprof.start {mode = arg[1], out = arg[2], hz = tonumber(arg[4])})
last = clock()
for _ = 1, tonumber(arg[3]) do
    seventy(1e6)
    twenty(1e6)
    ten(1e6)
end
assert(cpprof.stop())
print(took[1], took[2], took[3])
