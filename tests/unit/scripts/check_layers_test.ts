import assert from "node:assert/strict";
import ts from "typescript";
import { deadExports, twinExports } from "../../../scripts/check_layers/exports.ts";
import { importProblems } from "../../../scripts/check_layers/imports.ts";
import { limitProblems } from "../../../scripts/check_layers/limits.ts";
import { recordProblems } from "../../../scripts/check_layers/records.ts";
import { roomProblems } from "../../../scripts/check_layers/rooms.ts";

const SIX_METHODS = "a(): void; b(): void; c(): void; d(): void; e(): void; f(): void;";
const TEN_FIELDS = "a; b; #c; d; e; f; g; h; i; readonly j = 1;";

/** Files at a limit, and additions that exceed it. */
const LIMITS: readonly (readonly [path: string, within: string, beyond: string, RegExp])[] = [
  ["src/a/b.ts", "x".repeat(100), "x".repeat(101), /^src\/a\/b\.ts:1: 101 columns, at most 100$/],
  ["src/a/b.ts", "\n".repeat(350), "\n".repeat(351), /^src\/a\/b\.ts: 351 lines, at most 350$/],
  ["tests/b.ts", "\n".repeat(400), "\n".repeat(401), /^tests\/b\.ts: 401 lines, at most 400$/],
  ["main.ts", functionOf(70), functionOf(71), /71 lines in a function, at most 70$/],
  [
    "src/a/b.ts",
    "function f(this: X, a: A, b: B, c: C, d: D) {}",
    "const f = (a, b, c, d, e) => 1;",
    /5 parameters, at most 4$/,
  ],
  [
    "src/a/b.ts",
    `class A { ${TEN_FIELDS} static k; l() {} }`,
    `class A { ${TEN_FIELDS} constructor(readonly k: K, l: L) {} }`,
    /11 fields in a class, at most 10$/,
  ],
  [
    "src/storage/port.ts",
    `interface A { ${SIX_METHODS} readonly g: number }`,
    `\ninterface A { ${SIX_METHODS} g(): void }`,
    /^src\/storage\/port\.ts:2: 7 methods of a port, at most 6$/,
  ],
];

Deno.test("layers: a source at a limit passes, and one beyond it is named", () => {
  for (const [path, within, beyond, problem] of LIMITS) {
    assert.deepEqual(limitProblems(sourceOf(path, within)), []);
    const problems = limitProblems(sourceOf(path, beyond));
    assert.equal(problems.length, 1, problem.source);
    assert.match(problems[0] ?? "", problem);
  }
});

Deno.test("layers: a record has at most seven fields, inherited ones included", () => {
  const five = "export interface Base { a: A; b: B; c: C; d: D; e(): void }";
  const text = `import type { Base } from "./base.ts";
import type { Missing } from "package";
export interface SevenDeps extends Omit<Base, "e"> { f: F; g: G; h: Missing }
export interface EightDeps extends Pick<Base, "a" | "b" | "c" | "d"> { f: F; g: G; h: H; i: I }
export type EightParts = Base & { f: F; g: G; h: H };
interface FarDeps extends EightDeps { j: J }
interface EightSources extends EightDeps {}
interface EightSubjects extends EightDeps {}
interface EightNeighbours extends EightDeps {}
interface EightSurroundings extends EightDeps {}
export type Others = EightParts;
`;
  const problems = recordProblems([
    sourceOf("src/a/base.ts", five),
    sourceOf("src/a/b.ts", text),
  ]);
  assert.deepEqual(problems, [
    "src/a/b.ts:4: 8 fields of EightDeps, at most 7",
    "src/a/b.ts:5: 8 fields of EightParts, at most 7",
    "src/a/b.ts:6: 9 fields of FarDeps, at most 7",
    ...["Sources", "Subjects", "Neighbours", "Surroundings"].map((kind, index) =>
      `src/a/b.ts:${index + 7}: 8 fields of Eight${kind}, at most 7`
    ),
  ]);
});

Deno.test("layers: a record that a class holds has at most seven fields, named or not", () => {
  const text = `interface SevenDeps { a: A; b: B; c: C; d: D; e: E; f: F; g: G }
class Right { #deps: SevenDeps; #parts: Omit<SevenDeps, "a"> & { h: H }; }
class Wrong { #deps: SevenDeps & { h: H }; #other: SevenDeps & { h: H }; }
`;
  assert.deepEqual(recordProblems([sourceOf("src/a/b.ts", text)]), [
    "src/a/b.ts:3: 8 fields of #deps, at most 7",
  ]);
});

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

function functionOf(lines: number): string {
  return `function f() {${"\n".repeat(lines - 1)}}\n`;
}
