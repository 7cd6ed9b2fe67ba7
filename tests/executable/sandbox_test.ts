import assert from "node:assert/strict";
import { executableTest, NO_OWN_ROOT } from "../support/executable.ts";
import { programsMissing } from "../support/program.ts";
import { pullTwice } from "../support/pulled_twice.ts";
import { sandbox } from "../support/sandbox.ts";
import { seccompMissing } from "../support/seccomp_filter.ts";
import { SYSTEMD_MISSING } from "../support/systemd.ts";

const EXCUSE = NO_OWN_ROOT || SYSTEMD_MISSING || seccompMissing() ||
  programsMissing("setpriv", "perl", "touch");

const FORBIDDEN = [
  "touch /etc/file",
  "touch /tmp/file",
  "ls /root/.profile",
  "cat /proc/meminfo",
  "test -e /dev/kmsg",
  "unshare --user true",
  "chrt --rr 1 true",
  "mount -t tmpfs none /mnt",
];

executableTest(EXCUSE, "executable: it works under the restrictions of its unit", async () => {
  using box = sandbox();

  await pullTwice(box);
});

executableTest(EXCUSE, "executable: that sandbox refuses all that the unit forbids", async () => {
  using box = sandbox();
  const succeeds = (command: string) => {
    const [program = "", ...args] = [...box.through, "sh", "-c", command];
    return new Deno.Command(program, { args, stdout: "null", stderr: "null" }).outputSync().success;
  };

  assert.ok(succeeds(`touch ${box.storage}/file`));
  // The encoder's thread does.
  assert.ok(succeeds("renice -n 19 $$"));
  for (const command of FORBIDDEN) assert.ok(!succeeds(command), command);
});
