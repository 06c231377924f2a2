// An error whose message is printed without a stack trace.

export class Stop extends Error {
  name = "Stop";
}
