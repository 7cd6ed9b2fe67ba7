// Builds the documents as a site in dist/docs. `--check` builds it in memory alone. Both fail for a
// page without a place in docs/SUMMARY.md and for a dead link.
import { buildSite, documentsIn } from "./docs/site.ts";

const TARGET = "dist/docs";

const host = Deno.env.get("GITHUB_SERVER_URL");
const repository = Deno.env.get("GITHUB_REPOSITORY");

const site = buildSite({
  documents: documentsIn(""),
  readText: (path) => Deno.readTextFileSync(path),
  sourceUrl: host && repository ? `${host}/${repository}/blob/main/` : undefined,
});
for (const problem of site.problems) console.error(problem);
if (site.problems.length > 0) Deno.exit(1);
if (!Deno.args.includes("--check")) {
  write();
  console.log(`${site.texts.size + site.copied.size} files in ${TARGET}: open index.html`);
}

function write(): void {
  Deno.mkdirSync(TARGET, { recursive: true });
  Deno.removeSync(TARGET, { recursive: true });
  for (const [name, text] of site.texts) Deno.writeTextFileSync(placeOf(name), text);
  for (const path of site.copied) {
    Deno.copyFileSync(path, placeOf(path.slice("docs/".length)));
  }
}

/** The path of a file of the site, in a folder that exists. */
function placeOf(name: string): string {
  const path = `${TARGET}/${name}`;
  Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  return path;
}
