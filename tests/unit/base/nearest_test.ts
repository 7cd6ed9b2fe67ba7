import assert from "node:assert/strict";
import { nearest } from "../../../src/base/nearest.ts";
import { flagName } from "../../../src/config/kinds/option.ts";
import { OPTIONS } from "../../../src/config/options.ts";

const FLAGS = Object.keys(OPTIONS).map(flagName);

for (
  const [typed, meant] of [
    ["--cache-max-sise", "--cache-max-size"],
    ["--cache-maxsize", "--cache-max-size"],
    ["--max-size", "--cache-max-size"],
    ["--cache-log-level", "--log-level"],
    ["--cache-storage-lcoal", "--cache-storage-local"],
    ["--cache-upstream-urls", "--cache-upstream-url"],
    ["--otel-enable", "--otel-enabled"],
    ["--analytic-reporting-enabled", "--analytics-reporting-enabled"],
    ["--CACHE_HOST_NAME", "--cache-hostname"],
  ] as const
) {
  Deno.test(`suggestion: ${typed} is a typo of ${meant}`, () => {
    assert.equal(nearest(typed, FLAGS), meant);
  });
}

for (
  const typed of [
    "--cache-allow-put-verb",
    "--cache-allow-get-verb",
    "--cache-allow-verb",
    "--cache-min-size",
    "--cache-max-time",
    "--cache-max-prioritie",
    "--no-cache-max-size",
    "--cache-upstream-timeout",
    "--cache-secret-key",
    "--otel-disabled",
    "--server-config",
    "--path",
    "--url",
  ]
) {
  Deno.test(`suggestion: ${typed} is another setting, and none is proposed`, () => {
    const others = FLAGS.filter((flag) => flag !== typed);
    assert.equal(nearest(typed, others), undefined);
  });
}
