import assert from "node:assert/strict";
import { checkKept, checkNarinfos, checkNars, type Found } from "../check.ts";
import { downloadRate } from "../curl.ts";
import type { Bench, Measure } from "../figure.ts";
import { frontLauncher } from "../launchers.ts";
import { median } from "../rounds.ts";
import { DIRECTORY, LARDER, type Server } from "../server.ts";

const NARS = { count: 1, bytes: 256 << 20, seed: 3 };

/** Each takes a tenth of a second, which other work of the machine can double. */
const DOWNLOADS = 9;

/** Hits of a big NAR that nginx sends for larder, beside those of nginx with the file itself. */
export const BEHIND_NGINX: Measure = {
  figures: [{
    name: "NAR hits of 256 MiB behind nginx with --server-accel-redirect, 1 client",
    unit: "MB/s",
    target: { kind: "ratio", atLeast: { [DIRECTORY]: 1 } },
  }],
  launches: "first set",
  async prepare(bench) {
    const { workplace, variants, corpus, servers } = bench;
    const folder = workplace.makeFolder("behind-nginx");
    const larder = await variants.behindNginx.launch(folder);
    const front = await frontLauncher(workplace, { larderUrl: larder.url, folder })
      .launch(workplace.makeFolder("nginx-front"));
    const objects = corpus.putNars(NARS);
    const measured = new Map<string, readonly [Server, Found]>();
    for (const server of [front, ...servers.filter(({ name }) => name === DIRECTORY)]) {
      const [nar] = await checkNarinfos(server, objects, corpus.publicKey);
      assert.ok(nar !== undefined);
      await checkNars(server, [nar]);
      await checkKept(server, [nar.narPath]);
      measured.set(server === front ? LARDER : server.name, [server, nar]);
    }
    return async ({ name }) => await rateOf(bench, measured.get(name));
  },
};

/** No value for other servers. */
async function rateOf(
  { workplace }: Bench,
  measured: readonly [Server, Found] | undefined,
): Promise<readonly number[]> {
  if (measured === undefined) return [];
  const [server, { narPath, narSize }] = measured;
  const wanted = { url: server.url + narPath, bytes: narSize };
  const rates: number[] = [];
  for (let at = 0; at < DOWNLOADS; at++) rates.push(await downloadRate(workplace, wanted, 1));
  return [median(rates)];
}
