import type { BaseCheckpointSaver, Checkpoint, CheckpointListOptions, CheckpointMetadata, CheckpointTuple, PendingWrite, SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { AgentClient } from "./index.js";

export interface SaverOptions {
  serde?: SerializerProtocol;
  /**
   * What becomes of a checkpoint whose parent is not the newest of its thread. `refuse`:
   * `put` throws `LeafMovedError`. `fork`: the thread gets a second branch unseen. A fork
   * that the program asks for, by `updateState` or by replaying a checkpoint, is always
   * possible. Default: `refuse`.
   */
  staleWriters?: "refuse" | "fork";
}

/** Keeps LangGraph's threads in an agent. All threads of a saver are in one agent. */
export declare class SessionAgentSaver extends BaseCheckpointSaver<any> {
  constructor(agent: AgentClient, options?: SaverOptions);
  getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined>;
  list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple>;
  put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: Record<string, string | number>): Promise<RunnableConfig>;
  putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void>;
  deleteThread(threadId: string): Promise<void>;
}
