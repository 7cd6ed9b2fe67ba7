// Builds the documents as a site in dist/docs.
import { buildSite, documentsIn } from "./docs/site.ts";

const TARGET = "dist/docs";

const host = Deno.env.get("GITHUB_SERVER_URL");
const repository = Deno.env.get("GITHUB_REPOSITORY");

const { texts, copied } = buildSite({
  documents: documentsIn(""),
  readText: (path) => Deno.readTextFileSync(path),
  sourceUrl: host && repository ? `${host}/${repository}/blob/main/` : undefined,
});
Deno.mkdirSync(TARGET, { recursive: true });
Deno.removeSync(TARGET, { recursive: true });
for (const [name, text] of texts) Deno.writeTextFileSync(placeOf(name), text);
for (const path of copied) Deno.copyFileSync(path, placeOf(path.slice("docs/".length)));
console.log(`${texts.size + copied.size} files in ${TARGET}: open index.html`);

/** The path of a file of the site, in a folder that exists. */
function placeOf(name: string): string {
  const path = `${TARGET}/${name}`;
  Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  return path;
}
