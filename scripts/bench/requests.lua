-- wrk's script: asks for the paths of a file in turn, for ever or once.
--   wrk … -s requests.lua URL -- FILE_OF_PATHS [once]
-- Prints one line: "result REQUESTS MICROSECONDS REFUSED BROKEN P99_MICROSECONDS".
local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long nanoseconds; } larder_bench_clock;
  int clock_gettime(int clock, larder_bench_clock *now);
]]

local requests = {}
-- wrk takes one request for a look before it starts: that one is not sent.
local at = -1
local started_us

local function now_us()
  local now = ffi.new("larder_bench_clock")
  ffi.C.clock_gettime(1, now)
  return tonumber(now.seconds) * 1e6 + tonumber(now.nanoseconds) / 1e3
end

local function result(...)
  io.write(string.format("result %d %d %d %d %d\n", ...))
  io.flush()
end

function init(args)
  for path in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
  if args[2] ~= "once" then return end

  -- wrk itself knows no number of requests, only a time: it is ended after the last answer.
  local answered, refused = 0, 0
  function response(status)
    answered = answered + 1
    if status ~= 200 then refused = refused + 1 end
    if answered < #requests then return end
    result(answered, now_us() - started_us, refused, 0, 0)
    os.exit(0)
  end
end

function request()
  if at == 0 then started_us = now_us() end
  at = at + 1
  return requests[math.max(at - 1, 0) % #requests + 1]
end

function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  result(summary.requests, summary.duration, errors.status, broken, latency:percentile(99))
end
