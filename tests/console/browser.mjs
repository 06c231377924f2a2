// The browser of the console's tests: the system's Chromium, driven by playwright-core. Nothing is
// downloaded. Without Chromium the tests are skipped on a laptop and fail where `CI` is set.
//
//   const { page, server } = await openConsole(t);
//   await page.goto(server.at("#/alice"));

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import { findOnPath } from "../../scripts/paths.mjs";
import { startServer } from "../workerd/harness.mjs";
import { gate } from "../workerd/model_server.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";

/**
 * A view that does not appear in this time is missing. The machine may be busy with other tests.
 */
const PATIENCE_MS = 60_000;

const executablePath =
  process.env.CHROMIUM ?? NAMES.map(findOnPath).find((path) => path !== null) ?? (existsSync(MAC) ? MAC : undefined);

/** The value of `skip` for `test`: the reason why the console can't be tested here, or `false`. */
export const skip =
  executablePath === undefined && !process.env.CI
    ? "no Chromium on this system: `apt install chromium`, or name one in CHROMIUM"
    : false;

/** Only the browser. */
export async function launch() {
  assert.ok(
    executablePath !== undefined,
    "Tests of pages need Chromium: `apt install chromium`, or name one in CHROMIUM.",
  );
  return await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"],
  });
}

/** The Worker and a browser. `options` are those of `startServer`. */
export async function startConsole(options = {}) {
  const browser = await launch();
  const server = await startServer({ vars: { AUTH: "open", MODEL: "demo" }, ...options, site: true });
  return new Console(server, browser);
}

class Console {
  constructor(server, browser) {
    this.server = server;
    this.browser = browser;
  }

  /** The address of a view. */
  at(hash) {
    return new URL(`/${hash}`, this.server.url).href;
  }

  /** A new page. The test fails if the page contacts another origin, violates its own policy, or throws. */
  async open(t, hash, options = {}) {
    const context = await this.browser.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: "reduce",
      ...options,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const wrong = [];
    page.on("pageerror", (error) => wrong.push(`thrown: ${error.stack}`));
    page.on("console", (message) => {
      if (message.type() === "error" && /Content Security Policy|Refused to|TrustedHTML/i.test(message.text()))
        wrong.push(message.text());
    });
    page.on("request", (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol.startsWith("http") && origin !== new URL(this.server.url).origin)
        wrong.push(`asked ${request.url()}`);
    });
    t.after(async () => {
      await context.close();
      assert.deepEqual(wrong, []);
    });
    await page.goto(this.at(hash));
    return page;
  }

  /** Calls an operation of the Worker directly, to verify the page's effects without the page. */
  async ask(agent, operation, input = {}) {
    const { status, body } = await this.server.call(agent, operation, input);
    assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
    return body;
  }

  async stop() {
    await this.browser.close();
    await this.server.stop();
  }
}

/**
 * Delays the page's matching requests: `arrived` is fulfilled when the first of them has arrived, and
 * `open()` releases them and later ones.
 */
export async function delayRequests(page, url, fits = () => true) {
  const here = gate();
  await page.route(url, async (route) => {
    if (!fits(route.request())) return await route.fallback();
    here.reach();
    await here.gate;
    // The page may have aborted the request, or be closed.
    await route.continue().catch(() => {});
  });
  return { arrived: here.reached, open: here.open };
}

/** Waits until the page has rendered its state. */
export function rendered(page) {
  return page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Repeats a request until the test accepts the answer. */
export async function until(ask, isRight) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (isRight(answer)) return answer;
    if (Date.now() > end) assert.fail(`still ${JSON.stringify(answer)?.slice(0, 500)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
