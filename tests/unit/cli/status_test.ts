import assert from "node:assert/strict";
import { runLarder } from "../../support/run_larder.ts";
import { freePort } from "../../support/free_port.ts";

for (
  const [status, expected] of [
    [200, [0, "larder answers at URL\n", ""]],
    [503, [1, "", "larder: URL is stopping: /readyz is 503\n"]],
  ] as const
) {
  Deno.test(`status: ${status} of /readyz is exit status ${expected[0]}`, async () => {
    const asked: string[] = [];
    await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, (request) => {
      asked.push(`${request.method} ${new URL(request.url).pathname}`);
      return new Response(null, { status });
    });
    const url = `http://127.0.0.1:${server.addr.port}`;

    const ran = await runLarder(["status", "--server", url]);

    assert.deepEqual([ran.status, ran.out, ran.err].map((one) => plain(one, url)), expected);
    assert.deepEqual(asked, ["GET /readyz"]);
  });
}

Deno.test("status: no server is exit status 1, with what to do", async () => {
  const ran = await runLarder(["status", "--server", `http://127.0.0.1:${freePort()}`]);

  assert.equal(ran.status, 1);
  assert.match(ran.err, /Cannot reach http:.*is larder running\?/);
});

function plain(given: number | string, url: string): number | string {
  return typeof given === "string" ? given.replaceAll(url, "URL") : given;
}

function onListen(): void {
  // Deno would print the address.
}
