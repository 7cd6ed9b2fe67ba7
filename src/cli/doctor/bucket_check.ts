import { narsProblem } from "../../app/doctor/read_nars.ts";
import type { StorePlaces } from "../../app/back_ends/back_ends.ts";
import { type Finding, findingsOn } from "./finding.ts";

/** The finding on the bucket of the NAR files; none for a local storage. */
export async function checkBucketOf({ nars }: StorePlaces): Promise<readonly Finding[]> {
  if (nars.kind === "local") return [];
  const { ok, failed } = findingsOn("bucket");
  const problem = await narsProblem(nars);
  if (problem === undefined) return [ok(`${nars.s3.bucket} can be listed`)];
  const advice = "check --cache-storage-s3-bucket, its endpoint, region and access keys";
  return [failed(`${nars.s3.bucket}: ${problem}`, advice)];
}
