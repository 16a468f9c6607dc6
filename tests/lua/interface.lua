-- The module's functions, and what they do when they are used wrongly.
local cpprof = require "cpprof"
local folder = arg[1]

local function fails(pattern, ...)
    local ok, message = ...
    assert(not ok, "no failure: " .. pattern)
    assert(tostring(message):find(pattern), message .. " is not " .. pattern)
end

-- start and stop
assert(cpprof.stop())
assert(cpprof.start {out = folder .. "/a.pb.gz"})
fails("profiler already running", cpprof.start {out = folder .. "/second.pb.gz"})
assert(not io.open(folder .. "/second.pb.gz"))
assert(cpprof.stop())
assert(io.open(folder .. "/a.pb.gz")):close()
fails("No such file", cpprof.start {out = folder .. "/no/such/file"})
for _, mode in ipairs {"fast", 5, true} do
    fails("#1 .*mode is none of tick, span, cpu", pcall(cpprof.start, {mode = mode}))
end
for _, hz in ipairs {0, 2.5, "x", 0 / 0, 1e300, -1, {}} do
    fails("#1 .*hz is not a whole number from 1 to 10000%)", pcall(cpprof.start, {hz = hz}))
end
fails("depth is not a whole number", pcall(cpprof.start, {depth = 5000}))
fails("rate is no field", pcall(cpprof.start, {rate = 1000}))
fails("a field has no name", pcall(cpprof.start, {"tick"}))
fails("out is not a string", pcall(cpprof.start, {out = true}))
fails("table expected", pcall(cpprof.start, 1))

-- labels
local function spin()
    local x = 0
    for i = 1, 5e6 do x = x + i end
end
assert(cpprof.start {out = folder .. "/labels.pb.gz", hz = 1000})
assert(cpprof.labels({a = "1"}, function(...) return select("#", ...) end, 1, nil) == 2)
fails("inside", pcall(cpprof.labels, {a = "2"}, function() error "inside" end))
spin() -- without
cpprof.labels({outer = "o"}, function()
    cpprof.labels({inner = "i", n = 7}, spin)
    pcall(cpprof.labels, {bad = "b"}, error)
    spin() -- outer alone
end)
local co = coroutine.wrap(function()
    cpprof.labels({task = "t"}, function()
        spin() -- in the task
        coroutine.yield()
        spin() -- in the task, later
    end)
    spin() -- after the task
end)
co()
spin() -- while the task waits
cpprof.labels({other = "x"}, co)
assert(cpprof.stop())
fails("table expected", pcall(cpprof.labels))
fails("value expected", pcall(cpprof.labels, {}))
fails("not a string", pcall(cpprof.labels, {[1] = "x"}, spin))
fails("neither a string nor", pcall(cpprof.labels, {x = {}}, spin))

-- profiles of the program's own
local files = assert(cpprof.profile.new "files")
fails("already in use", cpprof.profile.new "files")
fails("empty name", cpprof.profile.new "")
assert(cpprof.profile.lookup "nothing" == nil)
local handle, values = io.tmpfile(), {"text", 1, true, {}, print}
assert(files:add(handle))
for _, value in ipairs(values) do assert(files:add(value)) end
fails("duplicate value", files:add(handle))
fails("duplicate value", cpprof.profile.lookup "files":add "text")
assert(files:count() == 6 and files:name() == "files")
files:remove(handle)
files:remove(handle)
files:remove "never added"
assert(files:count() == 5)
for i = 1, 1000 do files:add {} end
collectgarbage()
assert(files:count() == 1005)
assert(files:add(handle))
fails("value expected", pcall(files.add, files, nil))
fails("not a number, equal to none", pcall(files.add, files, 0 / 0))
assert(files:write(folder .. "/files.pb.gz"))
assert(files:write {out = folder .. "/files.txt", debug = 1})
fails("debug is not a whole number", pcall(files.write, files, {debug = "x"}))
fails("file is no field", pcall(files.write, files, {file = "x"}))
fails("rate is not a whole number", pcall(cpprof.heap, {rate = -1}))
fails("built%-in Profile", cpprof.profile.lookup "heap":add(1))

-- the heap
assert(cpprof.heap {rate = 4096})
local keep = string.rep("x", 1e7)
local ok, message = cpprof.heap {out = folder .. "/heap.pb.gz"}
assert(ok or message:find("do not come by cpprof", 1, true), message)
print "done"
