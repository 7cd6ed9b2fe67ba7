/**
 * Marks the request of one member to another. The other answers from its own files and sends no
 * request, so none goes in a circle.
 */
export const MEMBER_HEADER = "larder-member";
