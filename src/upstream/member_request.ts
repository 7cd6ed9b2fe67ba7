/**
 * Marks the request of one member to another. The other answers with what it has, and asks nobody:
 * so no request goes round.
 */
export const MEMBER_HEADER = "larder-member";
