import assert from "node:assert/strict";
import ts from "typescript";
import { ambientProblems } from "../../../scripts/check_layers/ambient.ts";
import { deadExports, twinExports } from "../../../scripts/check_layers/exports.ts";
import { importProblems } from "../../../scripts/check_layers/imports.ts";
import { roomProblems } from "../../../scripts/check_layers/rooms.ts";

Deno.test("layers: imports go down, and from main.ts to src/cli alone", () => {
  const problems = (path: string, imported: string) =>
    importProblems(sourceOf(path, `import "${imported}";`));
  const allowed = [
    ["main.ts", "./src/cli/run.ts"],
    ["src/cache/a.ts", "../storage/nar_store.ts"],
    ["src/app/a.ts", "../storage/local/b.ts"],
    ["src/app/a.ts", "../../deno.json"],
    ["tests/a.ts", "../src/cache/b.ts"],
  ] as const;
  for (const [path, imported] of allowed) assert.deepEqual(problems(path, imported), []);
  const refused = [
    ["main.ts", "./src/app/serve.ts", "hands everything to src/cli"],
    ["src/cli/a.ts", "../../main.ts", "nobody does"],
    ["src/nix/a.ts", "../cache/b.ts", "nix must not know cache"],
    ["src/storage/a.ts", "../metadata/b.ts", "storage must not know metadata"],
    ["src/http/a.ts", "../config/b.ts", "plain values"],
    ["src/cache/a.ts", "../storage/local/b.ts", "only src/app picks a back end"],
    ["src/utils/a.ts", "../nix/b.ts", "no rank"],
  ] as const;
  for (const [path, imported, reason] of refused) {
    const [problem, ...others] = problems(path, imported);
    assert.ok(problem?.startsWith(`${path}: `) && problem.includes(reason), problem);
    assert.deepEqual(others, []);
  }
});

Deno.test("layers: time, chance, network, files and threads come from src/runtime", () => {
  const ambient = [
    "performance.now();",
    "const now = Date.now;",
    "new Date();",
    "setTimeout(f, 1);",
    "const id = crypto.randomUUID();",
    "AbortSignal.timeout(1);",
    "fetch(url);",
    "Deno.openSync(path);",
    "Deno.connect(place);",
    'new Worker("a.ts");',
    'import { setTimeout as delay } from "node:timers/promises";',
  ];
  for (const text of ambient) {
    const [problem, ...others] = ambientProblems(sourceOf("src/a/b.ts", text));
    assert.match(problem ?? "", /^src\/a\/b\.ts:1: uses /, text);
    assert.deepEqual(others, []);
    assert.deepEqual(ambientProblems(sourceOf("src/runtime/b.ts", text)), []);
    assert.deepEqual(ambientProblems(sourceOf("tests/b.ts", text)), []);
  }
  assert.deepEqual(ambientProblems(sourceOf("src/a/b.ts", "new Date(1); clock.nowMs();")), []);
});

Deno.test("layers: two rooms of one layer know each other one way only", () => {
  const down = sourceOf("src/http/a.ts", 'import "./server/b.ts"; import "../cache/c.ts";');
  const up = sourceOf("src/http/server/b.ts", 'import "../a.ts";');
  const others = [sourceOf("src/cache/c.ts", ""), sourceOf("tests/a.ts", 'import "./b/c.ts";')];
  assert.deepEqual(roomProblems([down, ...others]), []);
  assert.deepEqual(roomProblems([down, up, ...others]), [
    "src/http/a.ts: imports src/http/server/b.ts; " +
    "the rooms form a cycle: src/http -> src/http/server -> src/http",
  ]);
});

Deno.test("layers: a cycle of three rooms is named once, at its rarest step", () => {
  const two = sourceOf("src/cache/a/one.ts", 'import "../b/one.ts"; import "../b/two.ts";');
  const more = sourceOf("src/cache/b/one.ts", 'import "../c/one.ts"; import "../c/two.ts";');
  const closing = sourceOf("src/cache/c/one.ts", 'import "../a/one.ts"; import "../d/one.ts";');
  const entry = sourceOf("src/cache/one.ts", 'import "./a/one.ts";');
  assert.deepEqual(roomProblems([two, more, entry]), []);
  assert.deepEqual(roomProblems([entry, two, more, closing]), [
    "src/cache/c/one.ts: imports src/cache/a/one.ts; " +
    "the rooms form a cycle: src/cache/c -> src/cache/a -> src/cache/b -> src/cache/c",
  ]);
});

Deno.test("layers: src exports nothing that tests alone use", () => {
  const source = sourceOf(
    "src/a/b.ts",
    "export function f() {} export const g = 1; export type H = 1;",
  );
  const test = sourceOf("tests/a.ts", "f(); g; type I = H;");
  assert.deepEqual(deadExports([source, sourceOf("scripts/a.ts", "f(); g;"), test]), [
    "src/a/b.ts: nothing but tests uses H",
  ]);
  assert.deepEqual(deadExports([source, sourceOf("src/c.ts", "f(); g; type I = H;")]), []);
  const own = sourceOf("src/d.ts", "export class E {} export type F = 1; new E() as F;");
  assert.deepEqual(deadExports([own]), ["src/d.ts: no other file uses E"]);
  assert.deepEqual(deadExports([own, sourceOf("tests/d.ts", "new E();")]), []);
});

Deno.test("layers: two files of src export no name twice", () => {
  const one = sourceOf("src/a.ts", "export function f(a: A): B; export function f() {} class G {}");
  const other = sourceOf("src/b/a.ts", "export const f = 1; export class G {} const one = 1;");
  const outside = [
    sourceOf("src/c.d.ts", "export interface G {}"),
    sourceOf("tests/a.ts", "export class G {}"),
  ];
  assert.deepEqual(twinExports([one, other, ...outside]), ["src/b/a.ts: src/a.ts exports f, too"]);
});

function sourceOf(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}
