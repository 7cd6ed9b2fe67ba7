import { commandPages } from "../support/doc_steps.ts";
import { runPage } from "../support/doc_pages.ts";
import { CODE_ROOT } from "../support/doc_programs.ts";
import { DOC_PROGRAMS_MISSING } from "../support/doc_programs_missing.ts";
import { DocWorld } from "../support/doc_world.ts";
import { testUnless } from "../support/program.ts";

testUnless(
  DOC_PROGRAMS_MISSING,
  "documents: the commands of each page run in order, and print the shown lines",
  async () => {
    await using world = await DocWorld.open();
    for (const page of commandPages(CODE_ROOT)) await runPage(page, world);
  },
);
