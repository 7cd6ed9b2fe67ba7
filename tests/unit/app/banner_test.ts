import assert from "node:assert/strict";
import { showBanner } from "../../../src/app/announce.ts";
import type { StartProbe } from "../../../src/upstream/upstream_pool.ts";
import { PlayedTime } from "../../support/played_time.ts";

const FACTS = {
  ...{ url: "http://larder:8501", storage: "/data", publicKeys: ["larder:key"] },
  sizeLimit: "45.0 GiB (auto: 5.0 GiB of the disk stay free)",
};
const LOOKS = [{ url: "https://a.example", error: undefined }];
const MARK = "  ✓ https://a.example answers\n";

Deno.test("banner: upstreams that answer soon have their marks in the same piece", async () => {
  const written: string[] = [];
  const sink = { write: (line: string) => void written.push(line) };
  await showBanner(sink, Promise.resolve(LOOKS), FACTS);
  assert.equal(written.length, 1);
  assert.match(written[0] ?? "", /Data in \/data, size limit 45\.0 GiB \(auto: 5\.0 GiB/);
  assert.ok(written[0]?.endsWith(`connect-timeout = 3\n\n${MARK}`), written[0]);
});

Deno.test("banner: the address does not wait long for a slow upstream", async () => {
  using time = new PlayedTime();
  const written: string[] = [];
  const { promise, resolve } = Promise.withResolvers<readonly StartProbe[]>();
  const sink = { write: (line: string) => void written.push(line) };
  const shown = showBanner(sink, promise, FACTS);
  await time.advance(500);
  await time.settled();
  assert.match(written.join(""), /listens at .*http:\/\/larder:8501/);
  resolve(LOOKS);
  await shown;
  assert.equal(written.at(-1), MARK);
});

Deno.test("banner: it has the line of the firewall, and says where only this machine reaches it", async () => {
  const shown = async (facts: Partial<typeof FACTS> & { readonly firewall?: string }) => {
    let text = "";
    const sink = { write: (line: string) => void (text += line) };
    await showBanner(sink, Promise.resolve([]), { ...FACTS, ...facts });
    return text;
  };
  const firewall = "sudo ufw allow 8501/tcp";
  assert.match(await shown({ firewall }), /A firewall is up[^\n]*\n {4}sudo ufw allow 8501\/tcp\n/);
  assert.doesNotMatch(await shown({}), /firewall/);
  const alone = await shown({ url: "http://127.0.0.1:8501", firewall });
  const inner = await shown({ url: "http://ADDRESS-OF-THIS-CACHE:8501" });
  assert.match(inner, /A container does not know its address: [^\n]*--cache-hostname/);
  assert.match(alone, /Only this machine reaches it: [^\n]*--server-addr/);
});
