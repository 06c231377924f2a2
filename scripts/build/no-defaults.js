// There is no file `agent-defaults.json` next to an installed package.
export const agentDefaults = () => undefined;
