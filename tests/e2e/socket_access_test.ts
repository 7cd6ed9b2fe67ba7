import assert from "node:assert/strict";
import { type LarderFlags, startLarder } from "../support/larder_process.ts";
import { procText } from "../support/proc_text.ts";
import { tempFolder } from "../support/temp_folder.ts";

const NO_UPSTREAM = { "cache-upstream-url": [] };

for (const [given, mode] of [[undefined, 0o660], ["0666", 0o666], ["600", 0o600]] as const) {
  Deno.test(`socket: its mode is ${mode.toString(8)} with ${given ?? "no option"}`, async () => {
    using folder = tempFolder();
    const { mode: got } = await socketOf(folder.path, {
      ...(given === undefined ? {} : { "server-socket-mode": given }),
    });
    assert.equal((got ?? 0) & 0o777, mode);
  });
}

Deno.test("socket: it gets the group that is named, or numbered", async () => {
  const wanted = someGroup();
  for (const group of [wanted.name, `${wanted.id}`]) {
    using folder = tempFolder();
    const { gid } = await socketOf(folder.path, { "server-socket-group": group });
    assert.equal(gid, wanted.id);
  }
});

Deno.test("socket: a group that does not exist ends the start with a plain sentence", async () => {
  using folder = tempFolder();
  await assert.rejects(socketOf(folder.path, { "server-socket-group": "no-such-group" }), {
    message: /Cannot find group no-such-group in \/etc\/group: .* --server-socket-group/,
  });
});

Deno.test("socket: a mode that is none is refused with the expected form", async () => {
  using folder = tempFolder();
  await assert.rejects(socketOf(folder.path, { "server-socket-mode": "rw" }), {
    message: /--server-socket-mode: got "rw", expected an octal mode such as 0660/,
  });
});

async function socketOf(folder: string, flags: LarderFlags): Promise<Deno.FileInfo> {
  const path = `${folder}/larder.sock`;
  await using _larder = await startLarder({
    ...NO_UPSTREAM,
    "server-addr": `unix:${path}`,
    ...flags,
  });
  return Deno.statSync(path);
}

/** The ids that the system notes for this process under a name (Linux). */
function idsIn(name: "Gid" | "Groups"): readonly number[] {
  const line = new RegExp(`^${name}:(.*)$`, "m").exec(procText("/proc/self/status"))?.[1] ?? "";
  return line.trim().split(/\s+/).filter((id) => id !== "").map(Number);
}

interface Group {
  readonly name: string;
  readonly id: number;
}

/** A group that the user of the tests may give files to: for root it is not root's own. */
function someGroup(): Group {
  const own = [...idsIn("Gid"), ...idsIn("Groups")];
  const lines = Deno.readTextFileSync("/etc/group").trim().split("\n");
  const groups = lines.map((line) => {
    const [name = "", , id = ""] = line.split(":");
    return { name, id: Number(id) };
  });
  const found = groups.find(({ id }) => own.includes(0) ? id !== 0 : own.includes(id));
  assert.ok(found, "there is a group");
  return found;
}
