import { stepsOf } from "./commands.ts";
import { readFences } from "./fences.ts";

/** The pages below `root` that have commands. */
export function commandPages(root: string): readonly string[] {
  const documents = [...Deno.readDirSync(`${root}/docs`)].map(({ name }) => `docs/${name}`)
    .filter((path) => path.endsWith(".md")).sort();
  return ["README.md", ...documents].filter((path) =>
    readFences(Deno.readTextFileSync(`${root}/${path}`)).flatMap(stepsOf).length > 0
  );
}
