// The unmodified Session Agent: every agent is at /agents/session-agent/{name}/…, and the console
// at /. Other Workers bind this one as a service.
export { default, SessionAgent } from "session-agent/worker";
