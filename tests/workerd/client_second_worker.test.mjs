// Runs client.test.mjs again from a Worker in its own runtime, against the shipped configuration of
// Session Agent with its static files.

process.env.CLIENT_FROM = "second";
await import("./client.test.mjs");
