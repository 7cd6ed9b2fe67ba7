/** The name by which links point to a heading, as GitHub makes it. */
export function slugOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}
