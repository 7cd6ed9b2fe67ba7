import assert from "node:assert/strict";
import type { Bytes } from "../../src/base/bytes.ts";
import { eventually } from "../support/eventually.ts";
import { executableTest } from "../support/executable.ts";
import { fakeUpstream } from "../support/fake_upstream.ts";
import { checkNar, servedNar, servedNarinfo } from "../support/served_nar.ts";
import { makeStoreObject } from "../support/store_object.ts";
import { tempFolder } from "../support/temp_folder.ts";

const object = makeStoreObject({ name: "tool-1.0", size: 20_000 });

/** Commands that need nothing but the executable, and how their output begins. */
const ALONE: readonly (readonly [words: readonly string[], begins: RegExp])[] = [
  [["version"], /^larder \d/],
  [["--help"], /^larder is a pull-through binary cache/],
  [["config"], /^#|^\[|^[a-z]/],
  [["config", "--example"], /^# Every option/],
  [["systemd-unit"], /ExecStart=.*\/larder serve/],
  [["completion", "bash"], /larder/],
  [["man"], /^\.TH/m],
];

executableTest(
  "",
  "alone: from an empty folder with an empty environment, it pulls and serves",
  async (
    executable,
  ) => {
    using folder = tempFolder();
    Deno.copyFileSync(executable, `${folder.path}/larder`);
    const command = (...args: readonly string[]) =>
      new Deno.Command(`${folder.path}/larder`, {
        args: [...args],
        cwd: folder.path,
        clearEnv: true,
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      });
    const run = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await command(...args).output();
      const decoder = new TextDecoder();
      return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
    };
    for (const [words, begins] of ALONE) {
      const { code, out, err } = await run(...words);
      assert.deepEqual([code, err], [0, ""], words.join(" "));
      assert.match(out, begins, words.join(" "));
    }
    assert.deepEqual(namesIn(folder.path), ["larder"]);

    await using upstream = await fakeUpstream({ objects: [object], stored: true });
    const settings = [
      `--cache-upstream-url=${upstream.url}`,
      `--cache-upstream-public-key=${upstream.publicKey}`,
    ];
    await using larder = command("serve", "--server-addr=127.0.0.1:0", ...settings).spawn();
    const stderr = new Response(larder.stderr).text();
    try {
      const url = await urlIn(larder.stdout);
      const port = Number(new URL(url).port);
      const narinfo = await servedNarinfo(port, object.storePathHash);
      await checkNar(narinfo, (await servedNar(port, narinfo)).body);
      await eventually("it is served from disk", async () => {
        return (await servedNar(port, narinfo)).headers.get("x-cache") === "HIT";
      });
      assert.equal((await run("status", "--server", url)).code, 0);
      const doctor = await run("doctor", "--json", "--server", url, ...settings);
      const { findings } = JSON.parse(doctor.out);
      const failed = findings.filter(({ mark }: { mark: string }) => mark === "failed");
      assert.deepEqual([failed, doctor.code], [[], 0]);
      assert.deepEqual(namesIn(folder.path), ["larder", "larder-data"]);
    } finally {
      larder.kill("SIGTERM");
    }
    assert.equal((await larder.status).code, 0, await stderr);
  },
);

function namesIn(folder: string): readonly string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** The address in the log. The rest of the log is read and forgotten. */
async function urlIn(log: ReadableStream<Bytes>): Promise<string> {
  const [first, rest] = log.tee();
  void rest.pipeTo(new WritableStream());
  let text = "";
  for await (const piece of first.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const url = /"msg":"server started".*?"url":"([^"]+)"/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`Cannot see the start: ${text}`);
}
