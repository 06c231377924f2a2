export default {
  test: {
    root: import.meta.dirname,
    include: ["*.suite.mjs"],
    globals: true,
    reporters: ["json"],
    // One process, which Node starts with the hooks that resolve the client.
    pool: "forks",
    execArgv: ["--import", new URL("resolve_packages.mjs", import.meta.url).href],
    fileParallelism: false,
    server: { deps: { external: [/\/client\//] } },
  },
};
