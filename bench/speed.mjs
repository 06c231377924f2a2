// Requests per second: this Worker, the floor and the peer side by side in one runtime.
// Written to results/speed.md and results/speed.svg.
//
//   npm run bench -- speed

import { CASES, compareAnswers, fill, measure, SLICE_MS } from "./side_by_side.mjs";
import { pathOf, startFrame } from "./frame/frame.mjs";
import { bars, machine, ratio, report, table, whole, withSpread } from "./frame/report.mjs";
import { median, spread } from "./frame/stats.mjs";

const ROUNDS = 15;

const frame = await startFrame();
await fill(frame);
await compareAnswers(frame);

const hasCall = await frame
  .ask({
    target: "AGENT",
    entryPoint: "call",
    agent: "written",
    path: pathOf("written", "getSession"),
    body: '{"sessionId":"s"}',
  })
  .then(
    () => true,
    () => false,
  );
/** Workers RPC is measured as soon as this Worker supports it. */
const ENTRY_POINTS = {
  floor: ["service", "object"],
  rows: ["service"],
  agent: ["service", "object", ...(hasCall ? ["call", "object-call"] : [])],
  peer: ["service", "object"],
};
const TARGETS = { floor: "FLOOR", rows: "FLOOR", agent: "AGENT", peer: "PEER" };

const lanes = [];
for (const [name, { path, ...asks }] of Object.entries(CASES)) {
  for (const who of ["floor", "rows", "agent", "peer"]) {
    for (const [at, ask] of [asks[who] ?? []].flat().entries()) {
      for (const entryPoint of ENTRY_POINTS[who]) {
        if (path !== undefined && entryPoint.endsWith("call")) continue;
        lanes.push({ key: `${name}/${who}/${entryPoint}/${at}`, target: TARGETS[who], entryPoint, ask, path });
      }
    }
  }
}
const rates = await measure(frame, lanes, ROUNDS);
await frame.stop();

/** The rates of all rounds, for the fastest of the ways to send a request. */
function roundsOf(name, who, entryPoint) {
  const ways = [0, 1].map((at) => rates.get(`${name}/${who}/${entryPoint}/${at}`)).filter(Boolean);
  return ways.sort((a, b) => median(b) - median(a))[0];
}

const figure = (rounds) => (rounds ? whole(median(rounds)) : "–");
const compared = (ours, theirs) => (ours && theirs ? spread(ours.map((rate, at) => rate / theirs[at])) : undefined);
const shown = (comparison) => (comparison ? withSpread(comparison) : "–");

const waysOfPeer = ["newest 50 messages", "newest 500 messages"].map(
  (name) => `${name} ${[0, 1].map((at) => whole(median(rates.get(`${name}/peer/service/${at}`)))).join(" and ")}`,
);

const rows = [];
const ratios = [];
const groups = [];
const ratioGroups = [];
for (const [name, { aim }] of Object.entries(CASES)) {
  const of = (who, entryPoint) => roundsOf(name, who, entryPoint);
  const service = of("agent", "service");
  const object = of("agent", "object");
  const all = [
    of("floor", "service"),
    service,
    of("peer", "service"),
    of("floor", "object"),
    object,
    of("peer", "object"),
  ];
  const calls = hasCall ? [of("agent", "call"), of("agent", "object-call")] : [];
  rows.push([name, ...all.map(figure), figure(of("rows", "service")), ...calls.map(figure)]);
  const [toFloor, toPeer] = [compared(service, of("floor", "service")), compared(service, of("peer", "service"))];
  const aims = [aim.floor && `${aim.floor} of the floor`, aim.peer && `${aim.peer} of the peer`].filter(Boolean);
  ratios.push([
    name,
    shown(toFloor),
    shown(compared(object, of("floor", "object"))),
    shown(compared(service, of("rows", "service"))),
    shown(toPeer),
    shown(compared(object, of("peer", "object"))),
    aims.join(", ") || "–",
  ]);
  groups.push({ name, bars: all.map((rounds) => rounds && median(rounds)) });
  if (toFloor)
    ratioGroups.push({ name, bars: [toFloor.median, compared(object, of("floor", "object")).median], aim: aim.floor });
}

await report(
  "speed",
  [
    "# Requests per second, side by side",
    "",
    `By \`npm run bench -- speed\`: medians of ${ROUNDS} rounds. In each round everybody has a slice of ${SLICE_MS} ms, in another order. Texts have 400 bytes; pages are read from sessions of 1,000.`,
    "",
    "A figure is requests per second of the runtime's CPU time, the caller's share included.",
    machine(),
    "",
    "Through the Worker, over a service binding; then straight on the object:",
    "",
    ...table(
      [
        "work",
        "floor",
        "this Worker",
        "peer",
        "floor, object",
        "this Worker, object",
        "peer, object",
        "floor by rows",
        ...(hasCall ? ["call", "call, object"] : []),
      ],
      rows,
    ),
    ...(hasCall ? [] : ["", "Workers RPC (`call`) has no column: this build does not offer it."]),
    "",
    `Of the peer's two ways to read a page, the newest first and by a budget of bytes, the faster one counts: ${waysOfPeer.join("; ")}.`,
    "",
    "Ratios round by round: the median, and the quarters around it. *By rows* is the floor that makes a page of messages in JavaScript, row by row:",
    "",
    ...table(
      [
        "work",
        "of the floor",
        "object, of the floor",
        "of the floor by rows",
        "of the peer",
        "object, of the peer",
        "aim",
      ],
      ratios,
    ),
  ],
  {
    "": bars({
      title: "Requests per second of CPU time",
      unit: "more is better; logarithmic",
      series: ["floor", "this Worker", "peer", "floor, object", "this Worker, object", "peer, object"],
      groups,
      scale: "log",
    }),
    "-ratios": bars({
      title: "This Worker as a share of the floor",
      unit: "1 is a bare Durable Object doing the same SQL; the dashed line is the aim",
      series: ["through the Worker", "on the object"],
      groups: ratioGroups,
      aims: ratioGroups.map(({ aim }) => aim),
      show: ratio,
    }),
  },
);
