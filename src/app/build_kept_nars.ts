import type { Downloads } from "../cache/download/downloads.ts";
import { KeptNars } from "../cache/kept/kept_nars.ts";
import type { Space } from "../space/space.ts";
import type { AppParts } from "./app_parts.ts";

/** Wires the kept NAR files to the stores. */
export function buildKeptNars(
  { stores: { metadata, nars }, telemetry: { log } }: AppParts,
  { downloads, space }: { readonly downloads: Downloads; readonly space: Space },
): KeptNars {
  const { sweeper } = space;
  const changed = () => void space.altered();
  return new KeptNars({ metadata, nars, sweeper, downloads, changed, log });
}
