/** Blocks of variables: colours and measures, light and dark. */
const ROOT_REGEXP = /(?:@media[^{]*\{\s*)?:root(?:\[[^\]]*\])?\s*\{[^}]*\}(?:\s*\})?/g;

/** The site's style: the variables of the status page, and the rules of the site. */
export function siteStyle(
  statusPage: string,
  site: string,
): { readonly text: string; readonly problems: readonly string[] } {
  const text = `${(statusPage.match(ROOT_REGEXP) ?? []).join("\n\n")}\n\n${site}`;
  const set = new Set([...text.matchAll(/(--[\w-]+)\s*:/g)].map(([, name]) => name));
  const used = [...new Set([...site.matchAll(/var\((--[\w-]+)\)/g)].map(([, name = ""]) => name))];
  const problems = used.filter((name) => !set.has(name))
    .map((name) => `scripts/docs/site.css: src/http/page/page.css has no ${name} any more`);
  return { text, problems };
}
