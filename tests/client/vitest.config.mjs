export default {
  test: {
    root: import.meta.dirname,
    include: ["*.suite.mjs"],
    globals: true,
    reporters: ["json"],
    // One process, which Node starts with what finds the client.
    pool: "forks",
    execArgv: ["--import", new URL("resolve.mjs", import.meta.url).href],
    fileParallelism: false,
    // Each write is followed by an eviction, which waits for an object's timer of a second.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    server: { deps: { external: [/\/client\//] } },
  },
};
