// The Worker of the tests: yours, with a model that needs no key and repeats what it is told.

import { mockModel } from "session-agent/testing";
import worker, { Assistant as Own } from "../src/worker.ts";

const model = mockModel();

export class Assistant extends Own {
  model() {
    return model;
  }
}

export default worker;
