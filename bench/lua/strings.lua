for _ = 1, 40 do
    local parts = {}
    for i = 1, 20000 do
        parts[#parts + 1] = ("%d:%s"):format(i, ("x"):rep(i % 17))
    end
    local text = table.concat(parts, ",")
    local n = 0
    for word in text:gmatch("[^,]+") do n = n + #word:upper() end
end
