local N, count = 8, 0
local function ok(a, n, c)
    for i = 1, n - 1 do
        if a[i] == c or a[i] - i == c - n or a[i] + i == c + n then
            return false
        end
    end
    return true
end
local function add(a, n)
    if n > N then
        count = count + 1
    else
        for c = 1, N do
            if ok(a, n, c) then
                a[n] = c
                add(a, n + 1)
            end
        end
    end
end
for _ = 1, 120 do add({}, 1) end
