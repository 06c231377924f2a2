// Views that are seldom opened stand in a file of their own, which the browser loads when the
// first of them is opened.

import type { FunctionComponent } from "preact";
import { reach } from "../connection.ts";
import { useLoad } from "../load.ts";
import { Button, Loading } from "./basics.tsx";
import { Icon } from "./icons.tsx";

type Further = typeof import("../further.ts");

let further: Further | undefined;

async function loadFurther(): Promise<void> {
  if (further !== undefined) return;
  // A browser may remember that an import failed, and never try it again.
  await reach();
  further = await import("../further.ts");
}

/** A view that stands for one of that file. */
export function later<Props extends object>(
  choose: (from: Further) => FunctionComponent<Props>,
): FunctionComponent<Props> {
  return function Later(props: Props) {
    const { error } = useLoad("", loadFurther);
    if (further !== undefined) {
      const View = choose(further);
      return <View {...props} />;
    }
    return error === undefined ? <Loading what="this view" /> : <NotLoaded />;
  };
}

/** The Worker may have got a newer console since the page was opened. That one has other files. */
function NotLoaded() {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <p>This part of the console didn't load. The connection failed, or a newer version is deployed.</p>
      <Button onClick={() => location.reload()}>Reload page</Button>
    </div>
  );
}
