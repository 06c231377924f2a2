// Views that are seldom opened. Each is a file of its own, which the browser loads when the
// view is opened for the first time.

import type { FunctionComponent } from "preact";
import { useLoad } from "../load.ts";
import { Button, Loading } from "./basics.tsx";
import { Icon } from "./icons.tsx";

/** A view that stands for the one that `load` gives. */
export function later<Props extends object>(load: () => Promise<FunctionComponent<Props>>): FunctionComponent<Props> {
  let View: FunctionComponent<Props> | undefined;
  return function Later(props: Props) {
    const { error } = useLoad("", async () => (View ??= await load()));
    if (View !== undefined) return <View {...props} />;
    return error === undefined ? <Loading what="this view" /> : <NotLoaded />;
  };
}

/** The Worker may have got a newer console since the page was opened. That one has other files. */
function NotLoaded() {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <p>This part of the console did not load. The connection failed, or the Worker has a newer console.</p>
      <Button onClick={() => location.reload()}>Reload the page</Button>
    </div>
  );
}
