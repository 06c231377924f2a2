// The program that a conformance suite starts for each scenario, with the server's address as its
// last argument. The process of the tests, at CONFORMANCE_PLAYER, plays the scenario: client.mjs.

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
