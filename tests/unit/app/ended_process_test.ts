import assert from "node:assert/strict";
import { newMemberId } from "../../../src/base/member_id.ts";
import { hasEnded } from "../../../src/app/back_ends/ended_process.ts";

Deno.test("ended process: one that is killed has ended, one that runs has not", async () => {
  const host = Deno.hostname();
  const child = new Deno.Command("sh", { args: ["-c", "read -r line"], stdin: "piped" }).spawn();
  const member = newMemberId(host, child.pid);
  assert.equal(hasEnded(member), false);
  child.kill("SIGKILL");
  await Promise.all([child.status, child.stdin.close().catch(() => undefined)]);
  assert.equal(hasEnded(member), true);
});

Deno.test("ended process: a member that had this process's id was its predecessor", () => {
  assert.equal(hasEnded(newMemberId(Deno.hostname(), Deno.pid)), true);
});

Deno.test("ended process: members of other hosts count as running", () => {
  for (const member of [newMemberId("elsewhere.example", 1), crypto.randomUUID(), "../x", ""]) {
    assert.equal(hasEnded(member), false);
  }
});
