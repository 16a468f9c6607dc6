-- All shapes of a stack. Which lines are which is in run.py, by the comments.
local cpprof = require "cpprof"

local function work(n)
    local x = 0
    for i = 1, n do x = x + i % 3 end
    return x
end

local N = tonumber(arg[4]) -- so long does each work
local thing = setmetatable({}, {
    __add = function(a, b)
        local x = work(N) return x
    end})
function thing:method() local x = work(N) return x end
local M = {inner = {}}
M.inner.deep = function() local x = work(N) return x end

local function tail(n) return work(n) end

local function body()
    for _ = 1, 2 do
        work(N) -- in a coroutine
        coroutine.yield()
    end
end

assert(cpprof.start {mode = arg[1], out = arg[2], hz = tonumber(arg[3])})
local _ = thing + 1
thing:method()
M.inner.deep()
tail(N)
local wrapped = coroutine.wrap(body)
wrapped()
wrapped()
coroutine.resume(coroutine.create(function()
    local inner = coroutine.wrap(body)
    inner()
    error "left by an error"
end))
print(pcall(function() work(N) local y = nil + 1 end))
print(xpcall(function() work(N) error {} end, function() return "handled" end))
work(N) -- after errors
local list = {}
for i = 1, 60000 do list[i] = i * 7919 % 50021 end
table.sort(list, function(a, b) return a < b end)
assert(load(string.dump(work, true)))(N) -- stripped
assert(load("local x = 0 for i = 1, (...) do x = x + i end"))(N)
os.execute "sleep 0.3" -- sleeps
local heap = {}
for i = 1, 3e5 do heap[i] = {} end
for _ = 1, 5 do collectgarbage() end
assert(cpprof.stop())
