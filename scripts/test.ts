// Runs the tests, and prints the skipped ones with their reasons and one line of counts. Arguments
// go to `deno test`: folders, `--filter TEXT`, and so on. If both folders of faults are among them,
// or without arguments, the results must match the table of faults in docs/reliability.md. Files
// that mostly wait run in a process of their own, beside the others. Many files share a module:
// nothing of a test stays. `--list-skipped`, in front of files or folders, runs no test, and names those
// that would be skipped. `--skipped-in LOG` there runs those that the run with this log skipped.
import { RECORDS_VARIABLE } from "../tests/support/reliability_record.ts";
import { SOCKET_VARIABLE } from "../tests/support/test_socket.ts";
import { readRecords, unlikeTable } from "./reliability_table.ts";
import {
  countsIn,
  joined,
  LIST_FILTER,
  partsOf,
  sharedModules,
  SharedOutput,
  skippedIn,
  type TestCounts,
  testFilesAt,
  type TestRun,
  wordsFor,
} from "./test_runs.ts";

const runFolder = Deno.makeTempDirSync({ prefix: "larder-test-" });

const [major = 0, minor = 0] = Deno.version.deno.split(".").map(Number);
const IS_NEWER = major > 2 || minor >= 9;

/** Deno 2.9 wants the paths of Unix sockets here, which older ones cannot read. */
const socketsOf = (socket: string) => IS_NEWER ? `,unix:${socket},unix:/nowhere/socket` : "";
/** Deno 2.9 requires `seteuid`, and cannot read that name here. */
const SYS = IS_NEWER
  ? ""
  : "=hostname,uid,seteuid,networkInterfaces,getPriority,setPriority,statfs";

/** Any other address is refused, so a test that needs one fails. */
const permissionsOf = (socket: string) => [
  `--allow-net=127.0.0.1${socketsOf(socket)}`,
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-run",
  // For the tests themselves; larder starts with its task's permissions.
  `--allow-sys${SYS}`,
];

/** Processes at once. Most tests wait for another process, so one leaves a processor idle. */
const JOBS = Number(Deno.env.get("TEST_JOBS") ?? 2);

const COLOUR_REGEXP = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

const log = Deno.args[0] === "--skipped-in" ? Deno.args[1] : undefined;
const isList = Deno.args[0] === "--list-skipped";
const isFiltered = Deno.args.some((word) => word.startsWith("-"));
/** Options of `deno test` choose tests. */
const isOfUser = isFiltered && log === undefined && !isList;
/** Folders whose tests together record every row of the table. */
const FAULT_FOLDERS = ["tests/e2e", "tests/reliability"];
const hasAllFaults = Deno.args.length === 0 ||
  FAULT_FOLDERS.every((folder) => Deno.args.includes(folder));
const givenRecords = Deno.env.get(RECORDS_VARIABLE);
const records = hasAllFaults && !isFiltered ? givenRecords ?? Deno.makeTempFileSync() : undefined;
const folders = Deno.args.some((word) => !word.startsWith("-")) ? [] : ["tests"];
const skipped: string[] = [];
let processes = 0;

const { code: status, counts } = await runAll();
Deno.removeSync(runFolder, { recursive: true });
let code = status;
if (records !== undefined) {
  if (code === 0 && !isInTable(records)) code = 1;
  if (givenRecords === undefined) Deno.removeSync(records);
}

if (skipped.length > 0) console.log(`Skipped:\n${skipped.map((name) => `  ${name}`).join("\n")}`);
// Without counts the tests did not even load, which is a failure.
const { passed, failed, ignored } = counts ??
  { passed: 0, failed: code === 0 ? 0 : 1, ignored: 0 };
console.log(`${passed} passed, ${failed} failed, ${ignored} skipped`);
Deno.exit(code);

/** Runs all tests. */
async function runAll(): Promise<TestRun> {
  if (isOfUser) return await runTests([...Deno.args, ...folders]);
  const words = isList
    ? [LIST_FILTER, ...Deno.args.slice(1), ...folders]
    : log === undefined
    ? [...Deno.args, ...folders]
    : wordsFor(skippedIn(Deno.readTextFileSync(log)), testFilesAt(Deno.args.slice(2)));
  const options = words.filter((word) => word.startsWith("-"));
  const parts = partsOf(testFilesAt(words.slice(options.length)), JOBS);
  if (parts.length === 1) return await runTests(options, parts[0]);
  const waiting = parts.values();
  const runs: TestRun[] = [];
  let printed = Promise.resolve();
  const job = async () => {
    for (const part of waiting) {
      const pieces: Uint8Array[] = [];
      runs.push(await runTests(options, part, async (piece) => void pieces.push(piece)));
      printed = printed.then(async () => {
        for (const piece of pieces) await writeAll(piece);
      });
    }
  };
  await Promise.all(Array.from({ length: JOBS }, job));
  await printed;
  return joined(runs);
}

/** Runs `deno test` with these options on these files, and prints its output. */
async function runTests(
  options: readonly string[],
  files: readonly string[] = [],
  print = writeAll,
): Promise<TestRun> {
  const place = `${runFolder}/${++processes}`;
  const socket = `${place}/socket`;
  Deno.mkdirSync(place);
  // The options of a user choose none of the marks between files.
  const given = isOfUser ? files : sharedModules(files, place);
  const shared = given === files ? undefined : new SharedOutput(place);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "--no-check", ...permissionsOf(socket), ...options, ...given],
    stdout: "piped",
    env: {
      ...(Deno.stdout.isTerminal() && !Deno.noColor ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" }),
      ...(records === undefined ? {} : { [RECORDS_VARIABLE]: records }),
      [SOCKET_VARIABLE]: socket,
    },
  }).spawn();
  let counts: TestCounts | undefined;
  for await (const line of printedLines(child.stdout, shared, print)) {
    const ignored = /^(.*) \.\.\. ignored/.exec(line);
    if (ignored?.[1] !== undefined) skipped.push(ignored[1]);
    counts = countsIn(line) ?? counts;
  }
  const { code } = await child.status;
  return { code, counts };
}

/** Prints the bytes, or what `shared` makes of them. Yields each line without its colours. */
async function* printedLines(
  bytes: ReadableStream<Uint8Array>,
  shared: SharedOutput | undefined,
  print: typeof writeAll,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  for await (const piece of bytes) {
    // A part of a line, too: it names the test that runs.
    if (shared === undefined) await print(piece);
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const coloured of lines) {
      const line = coloured.replace(COLOUR_REGEXP, "");
      const shown = shared === undefined ? line : shared.shown(line);
      if (shown === undefined) continue;
      if (shared !== undefined) {
        await print(encoder.encode(`${shown === line ? coloured : shown}\n`));
      }
      yield shown;
    }
  }
}

/** True if the table of faults has these results, in any order. */
function isInTable(records: string): boolean {
  const page = Deno.readTextFileSync(new URL("../docs/reliability.md", import.meta.url));
  const unlike = unlikeTable(page, readRecords(records));
  if (unlike.length === 0) return true;
  console.log("docs/reliability.md has other outcomes: run scripts/deno task reliability");
  console.log(unlike.join("\n"));
  return false;
}

async function writeAll(bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    written += await Deno.stdout.write(bytes.subarray(written));
  }
}
