// Runs the commands of the documents, a page at a time, and lists the run and the skipped ones.
// Arguments name pages; without any it runs all.
import { DocWorld } from "../tests/support/doc_world.ts";
import { readPage, runPage } from "../tests/support/doc_pages.ts";
import { commandPages } from "../tests/support/doc_steps.ts";

const pages = Deno.args.length > 0 ? Deno.args : commandPages(".");
await using world = await DocWorld.open();
for (const page of pages) {
  const startedAtMs = performance.now();
  try {
    await runPage(page, world, ({ place, tookMs }) => {
      console.log(`ran ${place} (${(tookMs / 1_000).toFixed(1)} s)`);
    });
  } catch (error) {
    console.log(`FAILED ${error instanceof Error ? error.message : error}`);
    Deno.exitCode = 1;
  }
  for (const { place, reason } of readPage(page).leftOut) {
    console.log(`not run: ${place}: ${reason}`);
  }
  console.log(`${page}: ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`);
}
