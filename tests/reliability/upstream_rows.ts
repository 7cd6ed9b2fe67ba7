import { after, inTurn, never, reset, rewritten, status, text } from "../simulation/scene.ts";
import type { Row } from "./row.ts";

/** Longer than an upstream is waited for that takes no connection. */
const SLOW_MS = 1_200;
const area = "upstream";
const absent = { area, saw: "absent", kept: "nothing" } as const;
const whole = { area, saw: "whole", kept: "nar" } as const;
const late = { narinfo: after(SLOW_MS), nar: after(SLOW_MS), document: after(SLOW_MS) };

/** Upstreams that give no narinfo, or none that larder may serve. */
export const UPSTREAM_ROWS: readonly Row[] = [
  {
    fault: "an upstream answers 500",
    ...absent,
    breaks: (scene) => scene.behave({ narinfo: status(500) }),
  },
  {
    fault: "it accepts, and says nothing for the idle timeout (500 ms)",
    ...absent,
    scene: { timeouts: { headerTimeoutMs: 100, idleTimeoutMs: 500 } },
    afterMs: 500,
    breaks: (scene) => scene.behave({ narinfo: never }),
  },
  {
    fault: "packets to all upstreams vanish from the start",
    ...absent,
    scene: { upstreams: [{ state: "silent" }, { state: "silent" }], isUnprobed: true },
    afterMs: 800,
  },
  {
    fault: "it takes connections, and answers late from the start",
    ...whole,
    scene: { upstreams: [late], isUnprobed: true },
  },
  {
    fault: "the only upstream needs longer than the response header timeout for each answer",
    ...whole,
    scene: { upstreams: [late], timeouts: { headerTimeoutMs: 300, idleTimeoutMs: 30_000 } },
  },
  {
    fault: "it resets every connection",
    ...absent,
    breaks: (scene) => scene.behave({ narinfo: reset }),
  },
  {
    fault: "a page for people in place of a narinfo",
    ...absent,
    breaks: (scene) => scene.behave({ narinfo: text("<!DOCTYPE html>\n<title>Welcome</title>\n") }),
  },
  {
    fault: "a narinfo of 50 MB",
    ...absent,
    breaks: (scene) =>
      scene.behave({ narinfo: rewritten((lines) => `${lines}X: ${"x".repeat(50_000_000)}\n`) }),
  },
  {
    fault: "a signature that is wrong",
    ...absent,
    breaks: (scene) =>
      scene.behave({
        narinfo: rewritten((lines) => (
          lines.replace(/^(Sig: [^:]+:)(.)/gm, (_, start, first) => (
            start + (first === "A" ? "B" : "A")
          ))
        )),
      }),
  },
  {
    fault: "a NAR URL that leads to another host",
    ...absent,
    breaks: (scene) =>
      scene.behave({
        narinfo: rewritten((lines) =>
          lines.replace(/^URL: .*$/m, "URL: http://127.0.0.1:1/secret.nar.xz")
        ),
      }),
  },
  {
    fault: "429 with `Retry-After`, once",
    ...whole,
    breaks: (scene) =>
      scene.behave({ narinfo: inTurn(status(429, { "retry-after": "0" }), (answer) => answer) }),
  },
  {
    fault: "503 with `Retry-After`, again and again",
    ...absent,
    breaks: (scene) => scene.behave({ narinfo: status(503, { "retry-after": "0" }) }),
  },
  {
    fault: "all upstreams are off",
    ...absent,
    scene: { upstreams: [{}, {}] },
    // It tries twice, and chance draws the pause.
    withinMs: 1_000,
    breaks: ({ scene }) => {
      for (const at of scene.upstreams.keys()) scene.behave(at, { state: "refused" });
    },
  },
  {
    fault: "the preferred upstream is off, another is not",
    ...whole,
    scene: { upstreams: [{}, {}] },
    breaks: (scene) => scene.behave({ state: "refused" }),
  },
  {
    fault: "a narinfo with a file size that lies",
    ...whole,
    scene: { upstreams: [{ compression: "gzip" }] },
    breaks: (scene) => {
      scene.hasFalseFileSize = true;
      scene.behave({
        narinfo: rewritten((lines) =>
          lines.replace(/^FileSize: (.*)$/m, (_, bytes) => `FileSize: ${Number(bytes) + 1}`)
        ),
      });
    },
  },
];
