// Runs the tests behind the table of faults, and writes that table. `--check FILE` only compares the
// table with the records of a run.
import { RECORDS_VARIABLE } from "../tests/support/reliability_record.ts";
import { readRecords, unlikeTable, withReliability } from "./reliability_table.ts";

const RECORDING = [
  "tests/e2e/full_disk_test.ts",
  "tests/e2e/kill_test.ts",
  "tests/e2e/locks_test.ts",
  "tests/e2e/outages_behind_nginx_test.ts",
  "tests/e2e/paused_holder_test.ts",
  "tests/e2e/postgres_test.ts",
  "tests/e2e/replicas_test.ts",
  "tests/e2e/s3_outage_test.ts",
  "tests/reliability",
];

const page = new URL("../docs/reliability.md", import.meta.url);
const [option, given] = Deno.args;
if (option === "--check" && given !== undefined) {
  const unlike = unlikeTable(Deno.readTextFileSync(page), readRecords(given));
  console.log(unlike.join("\n"));
  Deno.exit(unlike.length === 0 ? 0 : 1);
}
const records = Deno.makeTempFileSync();
const { code } = await new Deno.Command(Deno.execPath(), {
  args: ["run", "--quiet", "--allow-all", "scripts/test.ts", ...RECORDING],
  // The rows come in the order of the tests.
  env: { [RECORDS_VARIABLE]: records, TEST_JOBS: "1" },
}).spawn().status;
if (code === 0) {
  const written = withReliability(Deno.readTextFileSync(page), readRecords(records));
  Deno.writeTextFileSync(page, written);
}
Deno.removeSync(records);
Deno.exit(code);
