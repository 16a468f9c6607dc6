-- Work for the interpreter that `./dev demo` profiles: some seconds of tables,
-- strings, sorting and calls, so that more than one part of it is busy.

local function words(n)
    local list = {}
    local seed = 42
    for i = 1, n do
        seed = (seed * 1103515245 + 12345) % 2147483648
        local n = seed % 50021
        list[i] = string.char(97 + n % 26, 97 + n // 26 % 26,
            97 + n // 676 % 26, 97 + n // 17576)
    end
    return list
end

local function count(list)
    local seen, keys = {}, {}
    for _, word in ipairs(list) do
        if not seen[word] then
            seen[word] = 0
            keys[#keys + 1] = word
        end
        seen[word] = seen[word] + 1
    end
    table.sort(keys, function(a, b)
        if seen[a] ~= seen[b] then
            return seen[a] > seen[b]
        end
        return a < b
    end)
    return keys, seen
end

local function queens(n, row, columns, up, down)
    if row > n then
        return 1
    end
    local found = 0
    for column = 1, n do
        local u, d = row + column, row - column + n
        if not columns[column] and not up[u] and not down[d] then
            columns[column], up[u], down[d] = true, true, true
            found = found + queens(n, row + 1, columns, up, down)
            columns[column], up[u], down[d] = nil, nil, nil
        end
    end
    return found
end

local found, top, seen, n
for _ = 1, 12 do
    local keys
    keys, seen = count(words(600000))
    top = keys[1]
    found = queens(10, 1, {}, {}, {})
    n = select(2, string.rep("the quick brown fox ", 40000)
        :gsub("%w+", string.upper))
end
print(top .. " is the most frequent word, " .. seen[top] .. " times")
print("ten queens can be placed in " .. found .. " ways")
print(n .. " words are in upper case now")
