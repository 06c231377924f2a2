// The client's own suite, from a Worker in a runtime of its own, against Session Agent as it
// ships, with its static files. The suite is the same file.

process.env.CLIENT_FROM = "second";
await import("./client.test.mjs");
