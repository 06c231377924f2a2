import { startConsole } from "./browser.mjs";
import { buildSite } from "../../scripts/build/site.mjs";
import { startModel, say, callTool, gate } from "../workerd/model_server.mjs";
await buildSite();
const model = await startModel();
const site = await startConsole({
  directory: true,
  vars: { AUTH: "open", MODEL: "demo", OPENAI_BASE_URL: model.url },
  secrets: { OPENAI_API_KEY: "k" },
  workers: { tools: `export default { async fetch(request) { return Response.json({ did: "it" }); } };` },
});
const noTest = { after: () => {} };
const WIDE = { viewport: { width: 1280, height: 800 } },
  PHONE = { viewport: { width: 390, height: 780 } };
const open = (hash, dark, phone) =>
  site.open(noTest, hash, { ...(phone ? PHONE : WIDE), colorScheme: dark ? "dark" : "light" });
const { default: run } = await import(process.argv[2]);
try {
  await run({
    site,
    open,
    model,
    say,
    callTool,
    gate,
    shot: async (page, name) => {
      await page.waitForLoadState("networkidle").catch(() => {});
      await page.screenshot({ path: `/tmp/shots/${name}.png` });
    },
  });
} finally {
  await site.stop();
  await model.stop();
}
