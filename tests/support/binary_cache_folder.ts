import { fakeUpstream } from "./fake_upstream.ts";
import type { StoreObject } from "./store_object.ts";

/** Writes the objects into a folder as a binary cache, with a key of nobody. */
export async function writeBinaryCache(
  folder: string,
  objects: readonly StoreObject[],
): Promise<void> {
  Deno.mkdirSync(`${folder}/nar`, { recursive: true });
  await using upstream = await fakeUpstream({ objects, stored: true });
  for (const object of objects) {
    const { bytes } = await upstream.narFileOf(object);
    Deno.writeFileSync(`${folder}/${await upstream.narUrlOf(object)}`, bytes);
    const text = await upstream.narinfoOf(object);
    Deno.writeTextFileSync(`${folder}/${object.storePathHash}.narinfo`, text);
  }
}
