// Writes docs/demo.svg: the demo as it runs, a line at a time. Ports and folders, which differ from
// run to run, become fixed ones.
import { recordingSvg } from "./recording_svg.ts";

const COMMAND = "scripts/deno task demo";

const { code, stdout } = await new Deno.Command(Deno.execPath(), {
  args: ["task", "--quiet", "demo"],
}).output();
if (code !== 0) Deno.exit(code);
const output = new TextDecoder().decode(stdout).trimEnd();
const ports = [...new Set(output.match(/(?<=127\.0\.0\.1:)\d+/g))];
const text = ports.reduce(
  (all, port, at) => all.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${at === 0 ? 8080 : 8501}`),
  output,
).replaceAll(/\/\S+\/larder-test-\w+/g, "/tmp/larder-demo");
Deno.writeTextFileSync("docs/demo.svg", recordingSvg(COMMAND, text.split("\n")));
