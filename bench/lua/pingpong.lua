local function player() for i = 1, math.huge do coroutine.yield(i) end end
local ping, pong = coroutine.wrap(player), coroutine.create(player)
for _ = 1, 2e6 do
    ping()
    coroutine.resume(pong)
end
