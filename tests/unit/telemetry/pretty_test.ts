import assert from "node:assert/strict";
import { createLogger, type Logger } from "../../../src/telemetry/logger.ts";
import { factWords, prettyLine } from "../../../src/telemetry/pretty/pretty_line.ts";

/** The lines that a person sees, outside a terminal. */
function shownLines(columns?: number): { readonly log: Logger; readonly text: () => string } {
  let shown = "";
  const format = prettyLine({ hasColors: false, hasTime: false, columns });
  const log = createLogger("debug", { write: (line) => void (shown += format(line)) });
  return { log, text: () => shown };
}

const HOSTILE = "a\x1b[2J\u009b31m\u202eb\u2066\u200f\u2028\x07\nERROR: forged";

Deno.test("pretty log: a stranger's text is one line, and acts on no terminal", () => {
  const { log, text } = shownLines();
  log.info(HOSTILE, {
    path: HOSTILE,
    name: HOSTILE,
    error: HOSTILE,
    [HOSTILE]: 1,
    type: "Error",
    hint: HOSTILE,
    upstream: HOSTILE,
  });
  log.event("unexpected-failure", { stack: `Error: no\n  at ${HOSTILE}` });
  log.info("next", { used_bytes: 3 });

  const lines = text().trimEnd().split("\n");
  assert.doesNotMatch(lines.join(""), /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u);
  assert.deepEqual(lines.map((line) => line.slice(0, 5).trim()), ["", "ERROR", "", "", "", ""]);
  assert.ok(lines[0]?.includes("\\u001b[2J") && lines[0].includes("\\u202e"), lines[0]);
  assert.match(lines.at(-1) ?? "", /^ {6}larder {2,}next {2,}used=3 B$/);
});

const NAR = "1b7w2p5vzsl3yrn4m8dkqg6xf0hjc9ia2b7w2p5vzsl3yrn4m8dk.nar.xz";

Deno.test("pretty log: the package comes first, sizes and durations have units", () => {
  const { log, text } = shownLines();
  const upstream = "https://cache.nixos.org";
  const nar = { nar: NAR, name: "firefox-130.0", request_id: "r1" };
  log.info("downloading nar from upstream", { ...nar, upstream });
  log.info("nar cached successfully", { ...nar, file_size: 12_900_000, duration_ms: 1_940 });
  log.info("request", {
    ...{ ...nar, method: "GET", route: "/nar/{name}", path: `/nar/${NAR}`, status: 200 },
    ...{ bytes: 12_900_000, duration_ms: 41, outcome: "aborted", x_cache: "MISS" },
    client: "10.0.0.7",
  });
  log.event("upstream-down", { upstream, hint: "larder probes it" });
  const detail = "Cannot reach upstream: error sending request for url (http://a/): client " +
    "error (Connect): tcp connect error: Connection refused";
  const facts = {
    nar: NAR,
    request_id: "r2",
    used_bytes: 1_536,
    limit_ms: 20_000,
    reason: "no room",
  };
  log.event("nar-without-room", { ...facts, hint: "wait", detail });
  log.info("request", {
    ...{ method: "POST", route: "/gc", path: "/gc", status: 403, bytes: 0, duration_ms: 1 },
  });
  const path = "/pin/7b2wdz5lq3yrn4m8dkqg6xf0hjc9ia2b.narinfo";
  const pin = { path, route: "/pin/{hash}.narinfo", status: 200, bytes: 0, duration_ms: 1 };
  log.info("request", { method: "DELETE", ...pin });
  log.info("request", { method: "POST", ...pin, name: "hello-2.12" });

  assert.deepEqual(text().split("\n"), [
    "      firefox-130.0                downloading nar from upstream  " +
    "from https://cache.nixos.org",
    "      firefox-130.0                nar cached successfully        12.3 MiB  in 1.9s",
    "      firefox-130.0                GET 200 MISS                   " +
    "12.3 MiB  in 41ms  to 10.0.0.7  the client left",
    "WARN  cache.nixos.org              upstream is down               hint: larder probes it",
    "WARN  1b7w2p5v….nar.xz             nar not kept                   used=1.5 KiB  limit=20s  " +
    `reason: no room  Cannot reach upstream: Connection refused  hint: wait  nar=${NAR}`,
    "      /gc                          POST 403                       0 B  in 1ms",
    "      /pin/7b2wdz5l….narinfo       DELETE 200                     0 B  in 1ms",
    "      hello-2.12                   POST /pin 200                  0 B  in 1ms",
    "",
  ]);
});

Deno.test("pretty log: counts and flags are words", () => {
  const { log, text } = shownLines();
  log.info("reconciled", { files: 3, mended: 0, sizes: false, duration_ms: 12 });
  log.info("nars can be kept again", { times: 1, entries: 1, paths: 1_234, sizes: true });
  assert.deepEqual(text().split("\n"), [
    "      larder                       reconciled                     " +
    "in 12ms  3 files  no sizes  0 mended",
    "      larder                       nars can be kept again         " +
    "1 time  1 entry  1,234 paths  sizes",
    "",
  ]);
});

Deno.test("pretty log: an upstream's error has its status once", () => {
  const { log, text } = shownLines();
  const facts = { upstream: "http://a.example", reason: "status", status: 503 };
  log.info("upstream failed", { ...facts, detail: "HTTP status 503" });
  log.info("upstream failed", { ...facts, reason: "file_hash", detail: "other bytes" });
  assert.deepEqual(text().split("\n").map((line) => line.split(/ {2,}/).slice(3)), [
    ["HTTP status 503"],
    ["reason: file hash", "other bytes"],
    [],
  ]);
});

Deno.test("pretty log: a narrow terminal gets no wide columns, and foreign lines stay", () => {
  const { log, text } = shownLines(60);
  log.info("reconciled", { files: 3 });
  log.info("upload expired", { name: "nixos-system-workstation-24.11.20241201.abcdef0" });
  assert.equal(
    text(),
    "      larder               reconciled  3 files\n" +
      "      nixos-system-…bcdef0 upload expired\n",
  );

  const format = prettyLine({ hasColors: true, hasTime: true, columns: undefined });
  for (const line of ['{"resourceSpans":[]}\n', "no JSON\n", '{"level":"loud"}\n', "null\n"]) {
    assert.equal(format(line), line);
  }
  const ts = new Date(2026, 0, 2, 3, 4, 5).toISOString();
  const shown = format(JSON.stringify({ level: "warn", ts, msg: "token is short", token: "ci" }));
  const visible = shown.replaceAll("\x1b", "^");
  assert.match(visible, /^\^\[2m03:04:05\^\[0m \^\[33mWARN \^\[0m .*token=ci\n$/);
});

Deno.test("pretty log: it says who has cut an answer short", () => {
  const wordsOf = (outcome: string) => factWords("request", { outcome }, "info").words;
  assert.equal(wordsOf("aborted"), "the client left");
  assert.equal(wordsOf("stopped"), "larder stopped");
  assert.equal(wordsOf("closed"), "larder closed the connection");
});
