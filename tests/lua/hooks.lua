-- A program with debug hooks of its own, while a profile runs:
--     lua5.4 hooks.lua MODE OUT
local kept_sethook = debug.sethook
local n = 0
local function count() n = n + 1 end
local function work(s)
    local t = os.clock() + s
    while os.clock() < t do for i = 1, 100 do end end
end

debug.sethook(count, "", 1000)
local cpprof = require "cpprof"
local quiet = coroutine.wrap(function()
    debug.sethook()
    while true do work(.02) coroutine.yield() end
end)
assert(cpprof.start {mode = arg[1], out = arg[2]})
for i = 1, 5 do quiet() work(.02) end
assert(n > 0)
assert(debug.gethook() == count)
n = 0
work(.05)
assert(n > 0, "the hook is lost")

-- Ours is taken away by who knows nothing of it.
kept_sethook(count, "c")
work(.05)
kept_sethook()
assert(not debug.gethook())
function after_hook() work(tonumber(arg[3])) return 1 end
after_hook()
debug.sethook(count, "", 1000)
assert(cpprof.stop())
n = 0
work(.05)
assert(n > 0, "the hook is lost after the profile")
local f, mask, period = debug.gethook()
assert(f == count and mask == "" and period == 1000)
