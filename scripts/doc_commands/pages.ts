import { stepsOf } from "./commands.ts";
import { readFences } from "./fences.ts";

/** The pages below `root` that have commands, also those that no test runs. */
export function commandPages(root: string): readonly string[] {
  const documents = [...Deno.readDirSync(`${root}/docs`)].map(({ name }) => `docs/${name}`)
    .filter((path) => path.endsWith(".md")).sort();
  return ["README.md", ...documents].filter((path) =>
    readFences(Deno.readTextFileSync(`${root}/${path}`)).some((fence) =>
      fence.notRun !== undefined || stepsOf(fence).length > 0
    )
  );
}
