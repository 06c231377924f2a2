// An error whose message is printed without a stack trace.

export class UserError extends Error {
  name = "UserError";
}
