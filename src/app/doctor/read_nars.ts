import { reasonOf } from "../../base/failure.ts";
import { type NarPlace, openNars } from "../back_ends/nar_back_end.ts";

/** NAR names begin so: the list of these is short. */
const PREFIX = "0000";

/** Lists a few NAR files. Returns why that failed; writes nothing. */
export async function narsProblem(place: NarPlace): Promise<string | undefined> {
  try {
    await using backEnd = await openNars(place);
    for await (const _ of backEnd.nars.list(PREFIX)) break;
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}
