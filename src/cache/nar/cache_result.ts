/** The origin of an answer, as the header X-Cache names it. */
export type CacheResult = "HIT" | "MISS" | "JOINED";
