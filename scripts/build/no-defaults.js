// No file `agent-defaults.json` stands beside an installed package.
export const agentDefaults = () => undefined;
