// Asks for confirmation before a decision about an old call switches the conversation to another branch.

import { Button } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { counted } from "../text.ts";
import type { Conversation } from "./conversation.ts";

export function BranchOff({ conversation }: { conversation: Conversation }) {
  const decision = conversation.decision.value;
  if (decision === null || decision.newer === null || decision.call === null) return null;
  const { call } = decision;
  const [verb, doing] =
    call.output !== undefined
      ? ["Answer", "Answering"]
      : call.approved
        ? ["Approve", "Approving"]
        : ["Decline", "Declining"];
  return (
    <Dialog
      title={`${counted(decision.newer, "newer message")} after this call`}
      onClose={() => conversation.cancelDecision()}
    >
      <div class="dialog-body">
        <p>
          {doing} this call creates a new branch that starts at the call. The conversation continues on that branch.
        </p>
        <p>
          The newer messages stay on their own branch. To return to them, use the Branches tab or the arrows next to a
          message.
        </p>
      </div>
      <footer>
        <Button onClick={() => conversation.cancelDecision()}>Decide later</Button>
        <Button kind="main" icon="branch" onClick={() => conversation.branchOff()}>
          {verb} on a new branch
        </Button>
      </footer>
    </Dialog>
  );
}
