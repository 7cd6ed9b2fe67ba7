import assert from "node:assert/strict";
import type { Facts } from "../../../src/base/failure.ts";
import { EmptyRoots } from "../../../src/upstream/upstream_log.ts";
import type { NarinfoReading } from "../../../src/upstream/upstream.ts";

const ABSENT: NarinfoReading = { kind: "absent" };

/** The absent narinfos that each warning names, of one upstream. */
function watched() {
  const warned: unknown[] = [];
  const event = (_kind: string, facts: Facts = {}) => void warned.push(facts["absent"]);
  const roots = new EmptyRoots({ event });
  return {
    warned,
    absent(count: number) {
      for (let left = count; left > 0; left--) roots.note("http://a", ABSENT);
    },
    found: () => roots.note("http://a", { kind: "found" } as NarinfoReading),
    described: (hasInfo: boolean) => roots.described("http://a", hasInfo),
  };
}

Deno.test("empty roots: without nix-cache-info, 20 absent narinfos are one warning", () => {
  const { warned, absent, described } = watched();
  described(false);
  absent(19);
  assert.deepEqual(warned, []);
  absent(30);
  assert.deepEqual(warned, [20]);
});

Deno.test("empty roots: a nix-cache-info that is missed later counts as well", () => {
  const { warned, absent, described } = watched();
  absent(25);
  assert.deepEqual(warned, []);
  described(false);
  described(false);
  assert.deepEqual(warned, [25]);
});

Deno.test("empty roots: an upstream with a nix-cache-info, or one narinfo, is none", () => {
  const informed = watched();
  informed.described(true);
  informed.absent(25);
  assert.deepEqual(informed.warned, []);

  const used = watched();
  used.found();
  used.absent(25);
  used.described(false);
  assert.deepEqual(used.warned, []);
});
