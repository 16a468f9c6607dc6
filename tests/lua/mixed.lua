-- Scripts for mixed.py, which finds lines by their comments: mixed.lua WHAT N
local function burn(n)
    local x = 0
    for i = 1, n do x = x + i % 7 end
    return x
end

-- Seconds that the thread has waited for a processor; 0 where that is not told.
local function waited()
    local file = io.open "/proc/thread-self/schedstat"
    if not file then return 0 end
    local _, ns = file:read("*n", "*n")
    file:close()
    return (ns or 0) / 1e9
end

local took, last_cpu, last_wait = {0, 0, 0, 0, 0, 0}, 0, 0

-- CPU time of a line, and what it waited for a processor, of which a busy machine
-- gives no line its share. It is looked at on the line itself: who is to wait may
-- get to wait in that look.
local function look(part)
    local cpu, wait = os.clock(), waited()
    took[part] = took[part] + cpu - last_cpu
    took[part + 3] = took[part + 3] + wait - last_wait
    last_cpu, last_wait = cpu, wait
end

-- Turns of many ticks, of which what one is early or late at an end is little.
local function lines(n)
    local x = 0
    last_cpu, last_wait = os.clock(), waited()
    for _ = 1, 10 do
        for i = 1, n * 0.7 do x = x + i % 7 end look(1) -- seventy
        for i = 1, n * 0.2 do x = x + i % 7 end look(2) -- twenty
        for i = 1, n * 0.1 do x = x + i % 7 end look(3) -- ten
    end
    print(table.concat(took, " "))
    return x
end

local function texts(n)
    local text
    for _ = 1, n do
        text = string.rep("ab", 20000) -- repeats
        text = string.gsub(text, "a", "c") -- replaces
    end
    return text
end

local function sorts(n)
    local list = {}
    for _ = 1, n do
        for i = 1, 400 do list[i] = i * 7919 % 50021 end
        table.sort(list, function(a, b) -- sorts
            return a < b -- compares
        end)
    end
end

local ways = {}
local meta = {}
local object, other = setmetatable({}, meta), setmetatable({}, meta)
meta.__index = function(t, k) burn(k) return 1 end
meta.__newindex = function(t, k, v) burn(k) end
meta.__add = function(a, b) burn(b) return 1 end
meta.__lt = function() burn(ways.n) return true end
meta.__eq = function() burn(ways.n) return true end
meta.__len = function() burn(ways.n) return 1 end
meta.__concat = function() burn(ways.n) return "" end
meta.__call = function(_, n) burn(n) end
meta.__close = function() burn(ways.n) end

function ways.index(n) local x = object[n] return x end
function ways.newindex(n) object[n] = 1 end
function ways.add(n) local x = object + n return x end
function ways.lt() local x = object < other return x end
function ways.eq() local x = object == other return x end
function ways.len() local x = #object return x end
function ways.concat() local x = object .. other return x end
function ways.call(n) object(n) end
local closes = _VERSION == "Lua 5.4" and load([[
    local object, fails = ...
    local x <close> = object
    if fails then error "out" end]], "=closes")
function ways.close() closes(object) end
function ways.closed_by_error() pcall(closes, object, true) end
function ways.pcall(n)
    pcall(function() burn(n) error "out" end)
end
function ways.tail(n) return burn(n) end
function ways.iterator(n)
    for _ in function(_, i) if not i then burn(n) return 1 end end do end
end
function ways.replace(n)
    string.gsub("a", "a", function() burn(n) end)
end
function ways.compare(n)
    table.sort({2, 1}, function(a, b) burn(n) return a < b end)
end
function ways.load(n)
    local x = load("local burn, n = ... burn(n) return 1")(burn, n)
    return x
end
function ways.wrap(n)
    local go_on = coroutine.wrap(function()
        burn(n)
        coroutine.yield()
        pcall(function() coroutine.yield() burn(n) end)
    end)
    go_on() go_on() go_on()
end
function ways.resume(n)
    coroutine.resume(coroutine.create(function()
        table.sort({2, 1}, function(a, b)
            coroutine.wrap(burn)(n)
            return a < b
        end)
        error "out"
    end))
end

local function all(n)
    ways.n = n
    for _ = 1, 3 do
        for name, way in pairs(ways) do
            if name ~= "n" then way(n) end
        end
    end
end

local function memory(n)
    local kept = {}
    for i = 1, n do
        local text = string.rep("x", 1000) -- text
        local empty = {} -- empty
        local three = {1, 2, 3} -- three
        local pair = {x = 1, y = 2} -- pair
        local closure = function() return i end -- closure
        local joined = text .. i -- joined
        empty[1] = 1 -- grows
        kept[1], kept[2], kept[3] = three, pair, closure
        kept[4], kept[5] = joined, empty
    end
end

local function litter(n)
    local kept = {}
    for i = 1, n do
        kept[i % 50000] = {i, {i}} -- litters
    end
end

local function killed(n)
    lines(n)
    os.execute("kill -9 $PPID")
end

local what = {lines = lines, texts = texts, sorts = sorts, all = all,
              memory = memory, litter = litter, killed = killed,
              naps = function(n) lines(n) os.execute "sleep 0.3" end}
local arg = arg or {"lines", os.getenv "N"} -- in a host
what[arg[1]](tonumber(arg[2]))
print "done"
