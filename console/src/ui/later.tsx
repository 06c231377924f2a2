// Lazy loading: the less common views are a separate file, which the browser loads when the first of
// them is opened.

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

/** A placeholder for a view of that file. */
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

/** If a newer console was deployed since the page was opened, its files have other names. */
function NotLoaded() {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <p>This part of the console didn't load. The connection failed, or a newer version is deployed.</p>
      <Button onClick={() => location.reload()}>Reload page</Button>
    </div>
  );
}
