// Runs the tests, and prints the skipped ones with their reasons and one line of counts. Arguments
// go to `deno test`: folders, `--filter TEXT`, and so on. If both folders of faults are among them,
// or without arguments, the results must match the table of faults in docs/reliability.md.
import { RECORDS_VARIABLE } from "../tests/support/reliability_record.ts";
import { SOCKET_VARIABLE } from "../tests/support/test_socket.ts";
import { readRecords, withReliability } from "./reliability_table.ts";

const socketFolder = Deno.makeTempDirSync({ prefix: "larder-test-" });
const socket = `${socketFolder}/socket`;

const [major = 0, minor = 0] = Deno.version.deno.split(".").map(Number);
const IS_NEWER = major > 2 || minor >= 9;

/** Deno 2.9 wants the paths of Unix sockets here, which older ones cannot read. */
const SOCKETS = IS_NEWER ? `,unix:${socket},unix:/nowhere/socket` : "";
/** Deno 2.9 requires `seteuid`, and cannot read that name here. */
const SYS = IS_NEWER ? "" : "=hostname,uid,seteuid,networkInterfaces,getPriority,statfs";

/** Any other address is refused, so a test that needs one fails. */
const PERMISSIONS = [
  `--allow-net=127.0.0.1${SOCKETS}`,
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-run",
  // For the tests themselves; larder starts with its task's permissions.
  `--allow-sys${SYS}`,
];

const SUMMARY_REGEXP = /(\d+) passed.*\| (\d+) failed(?:.*?(\d+) ignored)?/;
const COLOUR_REGEXP = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

const isFiltered = Deno.args.some((word) => word.startsWith("-"));
/** Their tests together record every row of the table. */
const FAULT_FOLDERS = ["tests/e2e", "tests/reliability"];
const hasAllFaults = Deno.args.length === 0 ||
  FAULT_FOLDERS.every((folder) => Deno.args.includes(folder));
const records = hasAllFaults && !isFiltered ? Deno.makeTempFileSync() : undefined;
const folders = Deno.args.some((word) => !word.startsWith("-")) ? [] : ["tests"];
const child = new Deno.Command(Deno.execPath(), {
  args: ["test", "--no-check", ...PERMISSIONS, ...Deno.args, ...folders],
  stdout: "piped",
  env: {
    ...(Deno.stdout.isTerminal() && !Deno.noColor ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
    ...(records === undefined ? {} : { [RECORDS_VARIABLE]: records }),
    [SOCKET_VARIABLE]: socket,
  },
}).spawn();

const skipped: string[] = [];
let counts: readonly string[] | undefined;
let rest = "";
const decoder = new TextDecoder();
for await (const bytes of child.stdout) {
  await writeAll(bytes);
  const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
  rest = lines.pop() ?? "";
  for (const coloured of lines) look(coloured.replace(COLOUR_REGEXP, ""));
}
let { code } = await child.status;
Deno.removeSync(socketFolder, { recursive: true });
if (records !== undefined) {
  if (code === 0 && !isTold(records)) code = 1;
  Deno.removeSync(records);
}

if (skipped.length > 0) console.log(`Skipped:\n${skipped.map((name) => `  ${name}`).join("\n")}`);
const [, passed = "0", failed = "0", ignored = "0"] = counts ?? [];
// Without counts the tests did not even load, which is a failure.
const failures = counts === undefined && code !== 0 ? "1" : failed;
console.log(`${passed} passed, ${failures} failed, ${ignored} skipped`);
Deno.exit(code);

/** True if the table of faults has these results. */
function isTold(records: string): boolean {
  const page = Deno.readTextFileSync(new URL("../docs/reliability.md", import.meta.url));
  if (withReliability(page, readRecords(records)) === page) return true;
  console.log("docs/reliability.md has other outcomes: run scripts/deno task reliability");
  return false;
}

function look(line: string): void {
  const ignored = /^(.*) \.\.\. ignored/.exec(line);
  if (ignored?.[1] !== undefined) skipped.push(ignored[1]);
  counts = SUMMARY_REGEXP.exec(line) ?? counts;
}

async function writeAll(bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    written += await Deno.stdout.write(bytes.subarray(written));
  }
}
