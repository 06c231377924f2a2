// The program that a conformance suite starts for each scenario, with the server's URL as its last
// argument. The test process at CONFORMANCE_PLAYER runs the scenario: see client.mjs.

const { CONFORMANCE_PLAYER, MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_CONTEXT } = process.env;
const answer = await fetch(CONFORMANCE_PLAYER, {
  method: "POST",
  body: JSON.stringify({
    address: process.argv.at(-1),
    scenario: MCP_CONFORMANCE_SCENARIO ?? "",
    context: JSON.parse(MCP_CONFORMANCE_CONTEXT ?? "{}"),
  }),
});
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
