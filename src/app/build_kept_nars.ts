import type { Downloads } from "../cache/download/downloads.ts";
import { createCondemn } from "../cache/kept/condemn.ts";
import { KeptNars } from "../cache/kept/kept_nars.ts";
import type { KnownFiles } from "../cache/kept/known_files.ts";
import type { Space } from "../space/space.ts";
import type { AppParts } from "./build_app.ts";

export interface KeptNarsUsers {
  readonly known: KnownFiles;
  readonly downloads: Downloads;
  readonly space: Space;
}

/** Wires the kept NAR files to the stores. */
export function buildKeptNars(
  { metadata, nars, log, space: { owner } }: AppParts,
  { known, downloads, space }: KeptNarsUsers,
): KeptNars {
  const condemn = createCondemn({
    metadata,
    nars,
    downloads,
    removeFiles: (giveUp) => space.removals.batch(giveUp),
    owner,
    changed: () => void space.altered(),
    log,
  });
  return new KeptNars({ nars, known, condemn, downloads, log });
}
