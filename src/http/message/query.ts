/** The query of `ClientRequest.url`, with its "?"; empty if there is none. */
export function queryIn(url: string): string {
  const start = url.indexOf("?");
  return start < 0 ? "" : url.slice(start);
}
