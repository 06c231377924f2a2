import { defineConfig } from "vite";

export default defineConfig({
  // In this repository `session-agent` is a link, and its hooks have no `react` of their own.
  resolve: { dedupe: ["react"] },
});
