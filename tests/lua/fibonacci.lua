local cpprof = require "cpprof"

function fibonacci(n)
    if n < 2 then
        return n
    end
    return fibonacci(n - 1) + fibonacci(n - 2)
end

assert(cpprof.start {mode = arg[1], out = arg[2]})
fibonacci(tonumber(arg[3]))
assert(cpprof.stop())
