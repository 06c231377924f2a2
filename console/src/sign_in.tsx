// Asks for the secret or a token, once for each tab.

import { useState } from "preact/hooks";
import { Button, Field } from "./ui/basics.tsx";
import { credential, signIn } from "./connection.ts";

export function SignIn() {
  const [text, setText] = useState("");
  const wasRefused = credential.value !== null;
  return (
    <main id="main" class="sign-in" tabIndex={-1}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") signIn(text.trim());
        }}
      >
        <img src="/icon.svg" alt="" width="48" height="48" />
        <h1>Session Agent</h1>
        <p>This Worker asks who you are. Enter the Worker's secret, or a token that was minted for you.</p>
        {wasRefused && (
          <p class="problem" role="alert">
            The Worker did not accept what you entered.
          </p>
        )}
        <Field
          label="Secret or token"
          type="password"
          value={text}
          onInput={setText}
          required
          autofocus
          hint="It stays in this tab, and is forgotten when the tab closes."
        />
        <Button type="submit" kind="main" icon="key">
          Open the console
        </Button>
      </form>
    </main>
  );
}
