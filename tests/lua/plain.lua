local function work(n)
    local x = 0
    for i = 1, n do x = x + i % 3 end
    return x
end

for _ = 1, 10 do work(2e6) end
print(former, os.getenv "LUA_INIT", os.getenv "LUA_INIT_5_4")
