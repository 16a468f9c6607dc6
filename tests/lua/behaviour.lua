-- What a program can see of coroutines, hooks and errors; printed, so that it
-- can be compared with what is printed without a profile.
local cpprof
if arg[1] ~= "none" then
    cpprof = require "cpprof"
    assert(cpprof.start {mode = arg[1], out = arg[2], hz = 1000})
end

local function show(...)
    print(select("#", ...), ...)
end

local function burn()
    local x = 0
    for i = 1, 3e5 do x = x + i end
    return x
end

-- coroutines
show(pcall(coroutine.resume))
show(pcall(coroutine.resume, 1))
show(pcall(coroutine.wrap, 1))
local co = coroutine.create(function(a, b)
    burn()
    local c = coroutine.yield(a + b)
    local d, e = coroutine.yield(c * 2)
    burn()
    return d + e, "end"
end)
show(coroutine.resume(co, 1, 2))
show(coroutine.status(co), coroutine.resume(co, 10))
show(coroutine.resume(co, 3, 4))
show(coroutine.resume(co))
show(coroutine.resume(coroutine.running()))
local failing = coroutine.wrap(function() burn() error("text") end)
show(pcall(failing))
show(pcall(failing))
show(pcall(coroutine.wrap(function() error({}) end)) == false)
show(pcall(coroutine.wrap(function() error() end)))
local closed = coroutine.create(function()
    local x <close> = setmetatable({}, {__close = function() print "closed" end})
    coroutine.yield()
end)
coroutine.resume(closed)
show(coroutine.close(closed), coroutine.status(closed))
show(pcall(coroutine.wrap(function()
    local x <close> = setmetatable({}, {__close = function() print "shut" end})
    error "out"
end)))
show(coroutine.wrap(function()
    return pcall(function() return coroutine.yield(coroutine.isyieldable()) end)
end)())
local many = {}
for i = 1, 200 do many[i] = i end
show(select("#", coroutine.wrap(function(...)
    return coroutine.yield(...)
end)(table.unpack(many))))
local deep = 0
local function nest(n)
    deep = n
    if n < 100 then coroutine.wrap(nest)(n + 1) end
end
nest(1)
show(deep)
for w in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do
    show(w)
end

-- hooks of the program
local function counted(mask, count, fn)
    local n = 0
    debug.sethook(function() n = n + 1 end, mask, count)
    fn()
    debug.sethook()
    return n
end
local function lines()
    local x = 1
    for i = 1, 200000 do
        x = x + i
    end
    return x
end
show("lines", counted("l", 0, lines))
show("calls", counted("c", 0, function() for i = 1, 5000 do lines = lines math.abs(i) end end))
show("counts", counted("", 1000, lines) > 300)
show(pcall(function()
    debug.sethook(function() error "limit" end, "", 1000000)
    while true do end
end))
debug.sethook()
show(debug.gethook())

-- errors in hooks, garbage, tail calls
show(select(2, xpcall(function() local t = nil; return t.x end, debug.traceback)):match("^[^\n]*"))
local function loop(n) if n == 0 then return "bottom" end return loop(n - 1) end
show(loop(100000))
show(pcall(string.rep))
collectgarbage()
if cpprof then
    show = nil
    assert(cpprof.stop())
    cpprof.stop()
end
