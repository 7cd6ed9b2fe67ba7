const FOLDER = new URL("../fixtures/narinfo/", import.meta.url);

/** The key that signed every narinfo fixture. */
export const FIXTURE_KEY = "cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=";

/** Narinfos as cache.nixos.org served them: the store path hash and the text. */
export const NARINFO_FIXTURES: readonly (readonly [storePathHash: string, text: string])[] = [
  ...Deno.readDirSync(FOLDER),
]
  .map(({ name }) => name)
  .filter((name) => name.endsWith(".narinfo"))
  .sort()
  .map((name) => [name.replace(".narinfo", ""), Deno.readTextFileSync(new URL(name, FOLDER))]);
