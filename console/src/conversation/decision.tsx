// Asks before a decision about an old call moves the conversation to another branch.

import { Button } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { counted } from "../text.ts";
import type { Conversation } from "./conversation.ts";

export function BranchOff({ conversation }: { conversation: Conversation }) {
  const decision = conversation.decision.value;
  if (decision === null || decision.newer === null || decision.call === null) return null;
  const [verb, doing] = decision.call.approved ? ["Approve", "approves"] : ["Decline", "declines"];
  return (
    <Dialog
      title={`${counted(decision.newer, "newer message")} after this call`}
      onClose={() => conversation.decideAnew()}
    >
      <div class="dialog-body">
        <p>
          A turn goes on where its call stands. Who {doing} this one begins a branch there, and the conversation goes on
          on that branch.
        </p>
        <p>
          The newer messages stay as they are, on a branch of their own. The tab Branches, and the arrows beside a
          message, lead back to them.
        </p>
      </div>
      <footer>
        <Button onClick={() => conversation.decideAnew()}>Leave the call open</Button>
        <Button kind="main" icon="branch" onClick={() => conversation.branchOff()}>
          {verb} on a new branch
        </Button>
      </footer>
    </Dialog>
  );
}
