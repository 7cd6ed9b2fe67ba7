/** A caller's id appears in headers and logs, so it must be short and plain. */
const PLAIN_ID_REGEXP = /^[A-Za-z0-9._-]{1,64}$/;

/** Makes unique ids for all servers, without random bytes for each. */
export function createRequestIds(): (given: string | null) => string {
  const prefix = crypto.randomUUID().slice(0, 13);
  let count = 0;
  return (given) => {
    if (given !== null && PLAIN_ID_REGEXP.test(given)) return given;
    return `${prefix}-${(++count).toString(36)}`;
  };
}
