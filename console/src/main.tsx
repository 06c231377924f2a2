import { render } from "preact";
import { App } from "./app.tsx";

const root = document.getElementById("console")!;
root.replaceChildren();
render(<App />, root);
