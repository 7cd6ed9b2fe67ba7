import assert from "node:assert/strict";
import denoJson from "../../../deno.json" with { type: "json" };
import { COMMANDS } from "../../../src/cli/commands.ts";
import { runWithInput } from "../../support/program.ts";
import { type Ran, runLarder } from "../../support/run_larder.ts";
import { tempFolder } from "../../support/temp_folder.ts";

function larder(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  return runLarder(args, { env });
}

Deno.test("larder: without a command it explains itself on standard error and fails", async () => {
  const { status, out, err } = await larder([]);

  assert.equal(status, 2);
  assert.equal(out, "");
  assert.match(err, /Usage: larder COMMAND/);
});

Deno.test("larder: --help and help list every command on standard output", async () => {
  const answers = await Promise.all([["--help"], ["-h"], ["help"]].map((args) => larder(args)));

  for (const { status, out, err } of answers) {
    assert.equal(status, 0);
    assert.equal(err, "");
    assert.match(out, /^ {2}serve .+\n {2}config .+$/m);
  }
});

Deno.test("larder: help of a command teaches by example and lists the options", async () => {
  const answers = await Promise.all([
    larder(["help", "serve"]),
    larder(["serve", "--help"]),
    larder(["serve", "--wrong", "-h"]),
  ]);

  for (const { status, out, err } of answers) {
    assert.deepEqual([status, err], [0, ""]);
    assert.match(out, /Examples:\n {2}larder serve\n/);
    assert.match(out, /--cache-priority NUMBER +CACHE_PRIORITY\n(.+\n)* +Default: 30\n/);
    assert.doesNotMatch(out, /Default: *\n/);
  }
});

Deno.test("larder: help fits a terminal of 100 columns", async () => {
  for (const { name } of COMMANDS) {
    const { out } = await larder([name, "--help"]);

    assert.deepEqual(out.split("\n").filter((line) => line.length > 100), []);
  }
});

Deno.test("larder: help of a command that speaks to a server shows its own flags", async () => {
  for (const name of ["pin", "unpin", "pins", "plan", "warm", "gc"]) {
    const { status, out } = await larder(["help", name]);

    assert.equal(status, 0);
    assert.match(out, new RegExp(`^Usage: larder ${name} `, "m"));
    assert.match(out, /^ {2}--server URL +LARDER_SERVER\n.+\n +Default: http:\S+8501$/m);
    assert.match(out, /^ {2}--token TOKEN +LARDER_TOKEN\n.+\n.+--token-file PATH$/m);
    assert.ok(!out.includes("--cache-priority"), out);
  }
});

Deno.test("larder: only help of serve lists the options of the server", async () => {
  for (const { name, flags } of COMMANDS) {
    const { out } = await larder([name, "--help"]);

    assert.equal(out.includes("--cache-priority"), name === "serve", name);
    assert.equal(
      out.includes("`larder serve --help` lists them"),
      flags === "server" && name !== "serve",
    );
  }
});

Deno.test("larder: every command but plan and warm gives up running programs at its start", async () => {
  const kept: string[] = [];
  for (const { name } of COMMANDS) {
    let isGivenUp = false;
    await runLarder([name, "--help"], { giveUpRun: () => void (isGivenUp = true) });
    if (!isGivenUp) kept.push(name);
  }
  assert.deepEqual(kept, ["plan", "warm"]);
});

Deno.test("larder: a permission that is given up is gone", async () => {
  // Without any nix on PATH, Deno would look for one first.
  using folder = tempFolder();
  Deno.writeTextFileSync(`${folder.path}/nix`, "#!/bin/sh\n", { mode: 0o755 });
  const { href } = new URL("../../../src/cli/command_process.ts", import.meta.url);
  const script = `import { denoProcess } from "${href}";
    Deno.env.set("PATH", "${folder.path}");
    denoProcess().giveUpRun();
    await denoProcess().nix(["--version"]).catch(({ name }) => console.log(name));`;
  const args = ["run", "--quiet", "--cached-only", "--allow-all", "-"];
  const { output } = await runWithInput(Deno.execPath(), args, script);
  assert.equal(output, "NotCapable\n");
});

Deno.test("larder: --version prints the version of deno.json", async () => {
  const { status, out } = await larder(["--version"]);

  assert.equal(status, 0);
  assert.equal(out, `larder ${denoJson.version}\n`);
});

Deno.test("larder: an unknown command proposes the nearest and fails", async () => {
  const { status, out, err } = await larder(["srve"]);

  assert.deepEqual([status, out], [2, ""]);
  assert.equal(err, 'larder: "srve": unknown command, did you mean serve?\n');
  assert.equal((await larder(["help", "confg"])).status, 2);
});

Deno.test("larder: options before the command get an error with their place", async () => {
  const { status, err } = await larder(["--log-level", "debug"]);

  assert.equal(status, 2);
  assert.match(err, /options follow the command: larder serve --log-level/);
});

Deno.test("larder: the server's flags may stand before the command, as in ncps", async () => {
  const words = ["--log-level", "debug", "--prometheus-enabled", "--no-otel-enabled"];
  const { status, out, err } = await larder([...words, "config", "--server-addr=:1"]);

  assert.deepEqual([status, err], [0, ""]);
  assert.match(out, /^log-level = "debug" +# flag --log-level$/m);
  assert.match(out, /^prometheus\.enabled = true +# flag/m);
  assert.match(out, /^server\.addr = ":1" +# flag/m);
  assert.match((await larder([...words, "confg"])).err, /"confg": unknown command, did you mean/);
});

Deno.test("larder: problems of the settings come one a line, with exit status 2", async () => {
  for (const command of ["serve", "config"]) {
    const { status, out, err } = await larder([command, "--log-level=loud"], {
      CACHE_PRIORITY: "0",
    });

    assert.deepEqual([status, out], [2, ""]);
    assert.deepEqual(err.split("\n"), [
      'larder: --log-level: got "loud", expected one of debug, info, warn, error',
      'larder: CACHE_PRIORITY: got "0", expected a whole number from 1 to 2147483647',
      "",
    ]);
  }
});

Deno.test("larder config: prints each setting with its source", async () => {
  const { status, out, err } = await larder(["config", "--server-addr", ":1"], {
    LOG_LEVEL: "warn",
  });

  assert.deepEqual([status, err], [0, ""]);
  assert.match(out, /^server\.addr = ":1" +# flag --server-addr$/m);
  assert.match(out, /^log-level = "warn" +# environment LOG_LEVEL$/m);
  assert.match(out, /^cache\.hostname = "host" +# default$/m);
});

const HOSTILE = "a\x1b[2J\u009b31m\u202eb\u2066\u200f\u2028";

Deno.test("larder: no text of a server, a file or an argument acts on a terminal", async () => {
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  const fields = (name: string) =>
    `StorePath: /nix/store/${"0".repeat(32)}-${name}\nURL: ${HOSTILE}\nNarHash: ${HOSTILE}\n`;
  let narinfo = "";
  await using server = Deno.serve(options, () => new Response(narinfo));
  const env = { LARDER_SERVER: `http://127.0.0.1:${server.addr.port}` };
  const told: string[] = [];
  for (const body of [HOSTILE, fields("x"), fields(HOSTILE)]) {
    narinfo = body;
    told.push((await larder(["warm", "0".repeat(32)], env)).err);
  }
  told.push((await larder([HOSTILE])).err, (await larder(["pin", HOSTILE])).err);
  told.push((await larder(["config", `--log-level=${HOSTILE}`])).err);
  for (const err of told) {
    assert.match(err, /^larder: /);
    assert.doesNotMatch(err.replaceAll("\n", ""), /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u);
  }
});

Deno.test("larder: help on a narrow terminal has full lines, and commands that a shell reads", async () => {
  for (const columns of [60, 80]) {
    for (const name of [undefined, ...COMMANDS.map((one) => one.name)]) {
      const words = name === undefined ? ["--help"] : [name, "--help"];
      const { out } = await runLarder(words, { columns });
      const lines = out.split("\n");
      assert.deepEqual(lines.filter((line) => line.length > columns), [], words.join(" "));
      // In a paragraph, the next line's first word did not fit behind its last one.
      const ragged = lines.filter((line, index) => {
        const next = lines[index + 1] ?? "";
        const isProse = /^\S/.test(line) && /^\S/.test(next);
        return isProse && `${line} ${next.split(" ")[0]}`.length <= columns;
      });
      assert.deepEqual(ragged, [], words.join(" "));
    }
  }
  const { out } = await runLarder(["plan", "--help"], { columns: 60 });
  assert.match(
    out,
    /^ {2}larder plan \\\n {3}\.#nixosConfigurations\.host\S+toplevel \\\n {3}--fetch\n {6}Fetch what/m,
  );
  const { out: verify } = await runLarder(["verify", "--help"], { columns: 60 });
  assert.match(verify, /jq \\\n {3}'\.pins\[\] \| select\(\.complete \| not\)'\n/);
});

Deno.test("larder: help fits a terminal of 60 columns, too", async () => {
  for (const words of [["--help"], ["pins", "--help"], ["serve", "--help"]]) {
    const { out } = await runLarder(words, { columns: 60 });
    // A flag and its variable have no space to break at.
    const long = out.split("\n").filter((line) => line.length > 60 && /\S +\S/.test(line.trim()));
    assert.deepEqual(long.filter((line) => line.trim().indexOf(" ") < 60), []);
  }
});

Deno.test("larder: -v is the version", async () => {
  assert.equal((await runLarder(["-v"])).out, (await runLarder(["--version"])).out);
});
