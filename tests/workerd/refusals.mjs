// Requests that an agent refuses, and the state that each of them needs. Tests send them over every
// transport.

const userEvent = (content, more) => ({ action: "user_message", content, ...more });
const append = (more) => ({ sessionId: "s", events: [userEvent("more")], ...more });

/**
 * The requests that an agent refuses: the operation, its input, the class, the status, and a field
 * of the details.
 */
export const REFUSALS = [
  ["loadEvents", { sesionId: "s" }, "InvalidRequestError", 400, { field: "sesionId" }],
  ["loadEvents", { sessionId: 1 }, "InvalidRequestError", 400, { field: "sessionId" }],
  ["createSession", { id: "x".repeat(201) }, "InvalidRequestError", 400, { field: "id" }],
  ["appendEvents", append({ parentId: "nothing" }), "MessageNotFoundError", 404, { field: "parentId" }],
  ["destroy", { confirm: "another" }, "InvalidRequestError", 400, { field: "confirm" }],
  ["listSessions", {}, "UnauthorizedError", 401, {}, "wrong"],
  ["createSession", {}, "ForbiddenError", 403, {}, "read"],
  ["mintToken", {}, "ForbiddenError", 403, {}, "read"],
  ["setBlock", { label: "soul", content: "x" }, "BlockReadOnlyError", 403, { label: "soul" }],
  ["frobnicate", {}, "UnknownOperationError", 404, {}],
  ["loadEvents", { sessionId: "nowhere" }, "SessionNotFoundError", 404, { sessionId: "nowhere" }],
  ["getHistory", { sessionId: "nowhere" }, "SessionNotFoundError", 404, { sessionId: "nowhere" }],
  ["getBranches", { sessionId: "s", messageId: "nothing" }, "MessageNotFoundError", 404, {}],
  ["setBlock", { label: "nothing", content: "x" }, "BlockNotFoundError", 404, { label: "nothing" }],
  ["loadSkill", { label: "skills", key: "nothing" }, "SkillNotFoundError", 404, {}],
  ["appendEvents", append({ expectedLeafId: "gone" }), "LeafMovedError", 409, { expectedLeafId: "gone" }],
  [
    "appendMessage",
    { sessionId: "s", message: { role: "user", parts: [{ type: "text", text: "Hi" }] }, expectedLeafId: null },
    "LeafMovedError",
    409,
    { expectedLeafId: null },
  ],
  ["setBlock", { label: "memory", content: "x", expectedVersion: 99 }, "VersionConflictError", 409, {}],
  ["createSession", { id: "s" }, "AlreadyExistsError", 409, {}],
  [
    "runTurn",
    { sessionId: "s", message: { id: "e1", role: "user", parts: [{ type: "text", text: "x" }] } },
    "AlreadyExistsError",
    409,
    {},
  ],
  ["createSession", { name: "x".repeat(3_000_000) }, "PayloadTooLargeError", 413, {}],
  ["setBlock", { label: "memory", content: "word ".repeat(400) }, "BlockOverBudgetError", 422, { maxTokens: 20 }],
  ["getChanges", { sessionId: "s", limit: 0 }, "InvalidRequestError", 400, { field: "limit" }],
];

export const CODES = {
  InvalidRequestError: "invalid_request",
  UnauthorizedError: "unauthorized",
  ForbiddenError: "forbidden",
  BlockReadOnlyError: "block_read_only",
  UnknownOperationError: "unknown_operation",
  SessionNotFoundError: "session_not_found",
  MessageNotFoundError: "message_not_found",
  BlockNotFoundError: "block_not_found",
  SkillNotFoundError: "skill_not_found",
  LeafMovedError: "leaf_moved",
  VersionConflictError: "version_conflict",
  AlreadyExistsError: "already_exists",
  PayloadTooLargeError: "payload_too_large",
  BlockOverBudgetError: "block_over_budget",
};

/** `call(operation, input)` uses the secret. Returns the tokens that `REFUSALS` name. */
export async function createData(call) {
  await call("createSession", { id: "s" });
  await call("appendEvents", { sessionId: "s", events: [userEvent("one", { id: "e1" })] });
  await call("defineBlock", { label: "soul", kind: "readonly", defaultContent: "You are kind." });
  await call("defineBlock", { label: "memory", kind: "writable", maxTokens: 20 });
  await call("defineBlock", { label: "skills", kind: "loadable" });
  const { token } = await call("mintToken", { preset: "read", expiresIn: 600 });
  return { wrong: "not a token", read: token };
}
