import assert from "node:assert/strict";
import { tempFolder } from "../../support/temp_folder.ts";

const ROOT = new URL("../../..", import.meta.url).pathname;
const PINNED = Deno.readTextFileSync(`${ROOT}.dvmrc`).trim();
const OLDEST = endOf("oldest");
const NEWEST = endOf("newest");

Deno.test("scripts/deno: a Deno on PATH runs, from the oldest to the newest", () => {
  const [major = 0, minor = 0] = numbersOf(OLDEST);
  // As a text it would stand before the oldest.
  const between = `${major}.${minor}.100`;
  for (const version of [OLDEST, between, NEWEST]) {
    assert.equal(chosen({ onPath: version }), `PATH ${version}: eval 1`);
  }
});

Deno.test("scripts/deno: beside an older, newer or unreleased one runs the pinned one", () => {
  const [major = 0, minor = 0, patch = 0] = numbersOf(NEWEST);
  const newer = [`${major}.${minor}.${patch + 1}`, `${major}.${minor + 100}.0`];
  const [, oldestMinor = 0] = numbersOf(OLDEST);
  const unreleased = [`${NEWEST}-rc.1`, `${NEWEST}+1a2b3c4`];
  for (const version of [`${major}.${oldestMinor - 1}.9`, ...newer, ...unreleased]) {
    assert.equal(chosen({ onPath: version }), `npm deno@${PINNED}: eval 1`, version);
  }
});

Deno.test("scripts/deno: USE_DENO names the one that runs, by version or as an end", () => {
  const rows = [
    [NEWEST, OLDEST, `PATH ${NEWEST}`, `npm deno@${OLDEST}`],
    [OLDEST, NEWEST, `npm deno@${NEWEST}`, `PATH ${OLDEST}`],
  ] as const;
  for (const [onPath, version, newest, oldest] of rows) {
    assert.equal(chosen({ onPath, use: "newest" }), `${newest}: eval 1`);
    assert.equal(chosen({ onPath, use: "oldest" }), `${oldest}: eval 1`);
    assert.equal(chosen({ onPath, use: onPath }), `PATH ${onPath}: eval 1`);
    assert.equal(chosen({ onPath, use: version }), `npm deno@${version}: eval 1`);
  }
});

Deno.test("scripts/deno: npx is asked once for each version, and again where it is gone", () => {
  using clone = new FakeClone("1.0.0");
  Deno.mkdirSync(`${clone.path}/node_modules`);
  const pinned = `npm deno@${PINNED}: eval 1`;
  assert.deepEqual([clone.run(), clone.run(), clone.asked], [pinned, pinned, 1]);
  assert.deepEqual([clone.run("oldest"), clone.asked], [`npm deno@${OLDEST}: eval 1`, 2]);
  clone.moveInstalled();
  assert.deepEqual([clone.run(), clone.asked], [pinned, 3]);
});

Deno.test("scripts/deno: the pinned version is the newest", () => {
  assert.equal(PINNED, NEWEST);
});

Deno.test("scripts/deno: docs/development.md names its oldest and its newest", () => {
  const page = Deno.readTextFileSync(`${ROOT}docs/development.md`);
  assert.ok(page.includes(`larder runs on Deno ${OLDEST} to ${NEWEST}.`));
});

Deno.test("scripts/deno: the first task installs the packages with one line of its own", () => {
  using folder = tempFolder();
  const { path } = folder;
  for (const name of ["scripts", "bin"]) Deno.mkdirSync(`${path}/${name}`);
  for (const name of ["scripts/deno", ".dvmrc"]) Deno.copyFileSync(ROOT + name, `${path}/${name}`);
  const fake = `[ "$1" = --version ] && echo "deno ${PINNED} (stable)" || echo "$PWD: $*"`;
  Deno.writeTextFileSync(`${path}/bin/deno`, `#!/bin/sh\n${fake}\n`, { mode: 0o755 });
  const run = () => {
    const { stdout, stderr } = new Deno.Command(`${path}/scripts/deno`, {
      args: ["task", "demo"],
      cwd: "/",
      env: { PATH: `${path}/bin:${Deno.env.get("PATH")}`, USE_DENO: "" },
    }).outputSync();
    return [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
  };

  const line = "scripts/deno: installing packages into node_modules";
  assert.deepEqual(run(), [`${path}: install --quiet\n/: task demo`, line]);
  Deno.mkdirSync(`${path}/node_modules`);
  assert.deepEqual(run(), ["/: task demo", ""]);
});

/** The Deno of `scripts/deno eval 1` where PATH has one of this version, and npm has all. */
function chosen({ onPath, use = "" }: { onPath: string; use?: string }): string {
  using clone = new FakeClone(onPath);
  return clone.run(use);
}

/** A clone with nothing but the script, beside a PATH with a Deno and with npm. */
class FakeClone implements Disposable {
  readonly #folder = tempFolder();

  constructor(onPath: string) {
    Deno.mkdirSync(`${this.path}/scripts`);
    for (const name of ["scripts/deno", ".dvmrc"]) {
      Deno.copyFileSync(ROOT + name, `${this.path}/${name}`);
    }
    const version = `deno ${onPath} (stable, release, x86_64-unknown-linux-gnu)`;
    this.#program("deno", `[ "$1" = --version ] && echo "${version}" || echo "PATH ${onPath}: $*"`);
    // With builtins of the shell alone: PATH may have no other program.
    this.#program(
      "npx",
      `echo "\${3#--package=}" >"$0.asked"; echo >>"$0.count"
read -r name <"$0.installs"; echo "\${0%/*}/$name"`,
    );
    this.#install("installed");
  }

  get path(): string {
    return this.#folder.path;
  }

  /** How often npx ran. */
  get asked(): number {
    return Deno.readTextFileSync(`${this.path}/npx.count`).length;
  }

  /** From now on npx installs to another place, and the former one is gone. */
  moveInstalled(): void {
    Deno.removeSync(`${this.path}/installed`);
    this.#install("elsewhere");
  }

  run(use = ""): string {
    const { stdout, stderr } = new Deno.Command(`${this.path}/scripts/deno`, {
      args: ["eval", "1"],
      env: { PATH: `${this.path}:${Deno.env.get("PATH")}`, USE_DENO: use },
    }).outputSync();
    assert.equal(new TextDecoder().decode(stderr), "");
    return new TextDecoder().decode(stdout).trim();
  }

  #install(name: string): void {
    Deno.writeTextFileSync(`${this.path}/npx.installs`, `${name}\n`);
    this.#program(name, `read -r asked <"\${0%/*}/npx.asked"; echo "npm $asked: $*"`);
  }

  #program(name: string, lines: string): void {
    Deno.writeTextFileSync(`${this.path}/${name}`, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

function endOf(end: "oldest" | "newest"): string {
  const script = Deno.readTextFileSync(`${ROOT}scripts/deno`);
  return new RegExp(`^${end}=([0-9.]+)$`, "m").exec(script)?.[1] ?? "not written";
}

function numbersOf(version: string): number[] {
  return version.split(".").map(Number);
}
