/** A caller's id is taken over when it is short and plain: it goes into headers and logs. */
const PLAIN_ID_REGEXP = /^[A-Za-z0-9._-]{1,64}$/;

/** Makes ids that are unique among all servers, without asking for random bytes each time. */
export function createRequestIds(): (given: string | null) => string {
  const prefix = crypto.randomUUID().slice(0, 13);
  let count = 0;
  return (given) => {
    if (given !== null && PLAIN_ID_REGEXP.test(given)) return given;
    return `${prefix}-${(++count).toString(36)}`;
  };
}
