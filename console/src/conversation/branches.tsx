// The branches of a conversation, drawn as a tree. Each node is a series of events without a branch.

import { useEffect, useState } from "preact/hooks";
import { Button, Empty, Heading, Loading, Problem } from "../ui/basics.tsx";
import { may } from "../rights.ts";
import { counted, shownName } from "../text.ts";
import type { Conversation } from "./conversation.ts";
import { type Stretch, stretchesOf } from "./tree.ts";

const ROW = 64;
const LANE = 28;
/** A browser draws this many at once without a noticeable delay. */
const SHOWN = 300;

export function Branches({ conversation }: { conversation: Conversation }) {
  const { tree } = conversation;
  const [error, setError] = useState<unknown>(undefined);
  const [shown, setShown] = useState(SHOWN);
  const nodes = tree.nodes.value;
  const read = () => {
    setError(undefined);
    tree.read().catch(setError);
  };
  useEffect(() => {
    if (nodes === null) tree.readIfShort().catch(setError);
  }, [tree]);
  // Redrawn when another branch is chosen.
  tree.leafId.value;
  const stretches = nodes === null ? [] : stretchesOf(tree);
  const ends = stretches.filter(({ isEnd }) => isEnd).length;
  return (
    <section class="tab-page">
      <Heading
        title="Branches"
        note={nodes === null ? undefined : `${counted(nodes.length, "event")}, ${counted(ends, "branch", "branches")}`}
      >
        {nodes !== null && (
          <Button icon="redo" onClick={read}>
            Reload
          </Button>
        )}
      </Heading>
      {error !== undefined && <Problem error={error} retry={read} />}
      {tree.isReading.value && <Loading what="the tree" />}
      {nodes === null && !tree.isReading.value && error === undefined && (
        <Empty title="A long conversation" icon="branch">
          <p>Drawing the tree reads every event of the session, which costs one row per event.</p>
          <Button kind="main" onClick={read}>
            Draw the tree
          </Button>
        </Empty>
      )}
      {nodes?.length === 0 && (
        <Empty title="No branches yet" icon="branch">
          <p>Regenerate an answer or edit a message to create a branch.</p>
        </Empty>
      )}
      {stretches.length > 0 && <Drawing conversation={conversation} stretches={stretches.slice(0, shown)} />}
      {stretches.length > shown && <Button onClick={() => setShown(shown + SHOWN)}>Show more</Button>}
    </section>
  );
}

function Drawing({ conversation, stretches }: { conversation: Conversation; stretches: readonly Stretch[] }) {
  const lanes = Math.max(...stretches.map(({ lane }) => lane)) + 1;
  const isBusy = conversation.state.value !== "idle";
  return (
    <div class="tree" tabIndex={0} role="region" aria-label="Branch tree">
      <svg class="tree-lines" width={lanes * LANE + 12} height={stretches.length * ROW} aria-hidden="true">
        {drawn(stretches).map(({ stretch, row, above }) => (
          <path
            key={row}
            class={stretch.isOnPath ? "on" : ""}
            d={line(stretches[above]!.lane, above, stretch.lane, row)}
          />
        ))}
        {stretches.map((stretch, row) => (
          <circle key={row} class={stretch.isOnPath ? "on" : ""} cx={x(stretch.lane)} cy={y(row)} r={6} />
        ))}
      </svg>
      <ol>
        {stretches.map((stretch) => (
          <li key={stretch.first.id} class={stretch.isOnPath ? "on" : ""} style={{ height: `${ROW}px` }}>
            <div>
              <p class="tree-text">
                <bdi>{shownName(stretch.first.text || stretch.first.id)}</bdi>
              </p>
              <p class="note">
                {counted(stretch.events, "event")}
                {stretch.isEnd && stretch.isOnPath ? ", current" : ""}
              </p>
            </div>
            {stretch.isEnd && !stretch.isOnPath && may("setLeaf") && (
              <Button disabled={isBusy} onClick={() => void conversation.switchTo(stretch.last.id)}>
                Switch to this branch
              </Button>
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The nodes, with a line from each to its parent. The current branch is drawn last, above the others. */
function drawn(stretches: readonly Stretch[]) {
  return stretches
    .flatMap((stretch, row) => (stretch.above === null ? [] : [{ stretch, row, above: stretch.above }]))
    .toSorted((a, b) => Number(a.stretch.isOnPath) - Number(b.stretch.isOnPath));
}

const x = (lane: number) => lane * LANE + 14;
const y = (row: number) => row * ROW + 24;

/** Straight down, or down and then to the right. */
function line(fromLane: number, fromRow: number, toLane: number, toRow: number): string {
  const [x1, y1, x2, y2] = [x(fromLane), y(fromRow), x(toLane), y(toRow)];
  return x1 === x2 ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}V${y2 - LANE}Q${x1} ${y2} ${x2} ${y2}`;
}
