import { badSignature, garbage, rewritten, wrongFileSize } from "../support/narinfo_faults.ts";
import { dropped, firstTimes, heldUntil, status } from "../support/faults.ts";
import type { Row } from "./row.ts";

const forEver = new Promise<never>(() => {});
/** Longer than an upstream is waited for that takes no connection. */
const SLOW_MS = 1_200;
const slowly = () =>
  new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), SLOW_MS));
const area = "upstream";
const absent = { area, saw: "absent", kept: "nothing" } as const;
const whole = { area, saw: "whole", kept: "nar" } as const;

/** Upstreams that give no narinfo, or none that larder may serve. */
export const UPSTREAM_ROWS: readonly Row[] = [
  {
    fault: "an upstream answers 500",
    ...absent,
    breaks: ({ upstream }) => upstream.breakNarinfo(status(500)),
  },
  {
    fault: "it accepts, and says nothing for the idle timeout (500 ms)",
    ...absent,
    flags: {
      "cache-upstream-response-header-timeout": "100ms",
      "cache-upstream-body-idle-timeout": "500ms",
    },
    withinMs: 1_000,
    breaks: ({ upstream }) => upstream.breakNarinfo(heldUntil(forEver)),
  },
  {
    fault: "packets to all upstreams vanish from the start",
    ...absent,
    other: {},
    withinMs: 1_000,
    breaksFirst: ({ upstream, other }) => Promise.all([upstream.vanish(), other?.vanish()]),
  },
  {
    fault: "it takes connections, and answers late from the start",
    ...whole,
    upstream: { onRequest: slowly },
  },
  {
    fault: "the only upstream needs longer than the response header timeout for each answer",
    ...whole,
    flags: {
      "cache-upstream-response-header-timeout": "300ms",
      "cache-upstream-body-idle-timeout": "30s",
    },
    upstream: { onRequest: slowly },
  },
  {
    fault: "it resets every connection",
    ...absent,
    breaks: ({ upstream }) => upstream.breakNarinfo(dropped()),
  },
  {
    fault: "a page for people in place of a narinfo",
    ...absent,
    breaks: ({ upstream }) => upstream.breakNarinfo(garbage()),
  },
  {
    fault: "a narinfo of 50 MB",
    ...absent,
    breaks: ({ upstream }) =>
      upstream.breakNarinfo(rewritten((text) => `${text}X: ${"x".repeat(50_000_000)}\n`)),
  },
  {
    fault: "a signature that is wrong",
    ...absent,
    breaks: ({ upstream }) => upstream.breakNarinfo(badSignature()),
  },
  {
    fault: "a NAR URL that leads to another host",
    ...absent,
    breaks: ({ upstream }) =>
      upstream.breakNarinfo(
        rewritten((text) => text.replace(/^URL: .*$/m, "URL: http://127.0.0.1:1/secret.nar.xz")),
      ),
  },
  {
    fault: "429 with `Retry-After`, once",
    ...whole,
    breaks: ({ upstream }) =>
      upstream.breakNarinfo(firstTimes(1, status(429, { "retry-after": "0" }))),
  },
  {
    fault: "503 with `Retry-After`, again and again",
    ...absent,
    breaks: ({ upstream }) => upstream.breakNarinfo(status(503, { "retry-after": "0" })),
  },
  {
    fault: "all upstreams are off",
    ...absent,
    other: {},
    withinMs: 1_000,
    breaks: async ({ upstream, other }) => {
      await upstream.stop();
      await other?.stop();
    },
  },
  {
    fault: "the preferred upstream is off, another is not",
    ...whole,
    other: {},
    breaks: ({ upstream }) => upstream.stop(),
  },
  {
    fault: "a narinfo with a file size that lies",
    area,
    saw: "absent",
    kept: "narinfo",
    breaks: ({ upstream }) => upstream.breakNarinfo(wrongFileSize()),
  },
];
