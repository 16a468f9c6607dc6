rockspec_format = "3.0"
package = "cpprof"
version = "0.1.0-1"
source = {
   url = "git+file://.",
   dir = ".",
}
description = {
   summary = "Profile Lua scripts by line, as pprof files",
   detailed = [[
      A profiler for Lua 5.4, Lua 5.1 and LuaJIT with next to no cost: wall or
      CPU time by function and line, coroutines, labels, profiles of your own.
      The files open with cpprof, go tool pprof, Pyroscope and the like.
      libcpprof has to be installed.
   ]],
   license = "MIT",
}
dependencies = {"lua >= 5.1, < 5.5, ~= 5.2, ~= 5.3"}
external_dependencies = {
   CPPROF = {header = "cpprof/vm.h", library = "cpprof"},
}
build = {
   type = "builtin",
   modules = {
      cpprof = {
         sources = {
            "names/functions.c", "names/source_name.c",
            "state/programs.c", "state/running.c", "state/state.c",
            "follow/coroutines.c", "follow/hooks.c", "follow/interpreter.c",
            "follow/labels.c", "follow/peek.c", "follow/ticks.c",
            "follow/walk.c",
            "script/fields.c", "script/module.c", "script/profiles.c",
         },
         defines = {"_GNU_SOURCE"},
         incdirs = {"$(CPPROF_INCDIR)", "../../src"},
         libdirs = {"$(CPPROF_LIBDIR)"},
         libraries = {"cpprof"},
      },
   },
}
